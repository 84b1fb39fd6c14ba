"""rich's console for text of others: whatever way that comes into a table, a panel or a line, no terminal obeys it. Imported late, as rich is."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from lateshift.model.escaping import OBEYED

_SEEN = {code: "\ufffd" for code in OBEYED if code != 10}  # of one cell, as rich has measured most of them


class PlainConsole(Console):
    """What rich itself tells the terminal, its styles and the moves of its cursor, is no text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(segment.text.translate(_SEEN), segment.style)
