"""A graph of a workflow, as data and as drawings. What draws is imported when something is drawn: workers never do."""

from collections.abc import Mapping

from msgspec import Struct

from lateshift.model.workflow.graph import Edge, Node


class Graph(Struct, frozen=True):
    """What a workflow may do, or what a run of it did: `workflow.graph()`. The first node is where it begins."""

    name: str
    nodes: list[Node]
    edges: list[Edge]

    def mermaid(self) -> str:
        """A flow chart as Mermaid text, which many viewers of Markdown draw."""
        from lateshift.workflow.graph.mermaid import mermaid

        return mermaid(self.nodes, self.edges)

    def svg(self, links: Mapping[str, str] | None = None) -> str:
        """A picture that stands for itself, for light and dark screens. Nothing in it is fetched or run. With `links`, from the
        ids of nodes to where each leads, it is for a page that has the style of it."""
        from lateshift.workflow.graph.svg import svg

        return svg(self.name, self.nodes, self.edges, links)
