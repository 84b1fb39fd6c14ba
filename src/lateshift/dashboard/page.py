"""A page as a value: where it is, who may see it, what fills it, and what can be done there. What is done is what a route of the
API does, by the same handler, so that the same is allowed, refused and audited."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode

from lateshift.api.route import Asked, Handler, Permission, Reach, Route
from lateshift.api.routes.all import ROUTE_OF

Context: TypeAlias = dict[str, Any]
Form: TypeAlias = Mapping[str, str]


def _as_typed(form: Form) -> Any:
    """What was left empty was left out."""
    return {name: value for name, value in form.items() if value != ""}


def says_done(result: Any) -> str:
    """What was done to what, where there is nothing else to say."""
    return f"{result.subject}: {result.action}." if result.changed else f"{result.subject}: it was so before."


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A form on a page, for what a handler of the API does. `body`: of its route's body, made of what was typed. `says`: what the page then says at its top. `leads`:
    to which page, if not the same, by the answer and what was typed. `shows`: a template for the answer itself, where it is to be seen once and kept nowhere. `place`:
    of its form on the page, where it is said why it was refused; else at the top."""

    handler: Handler = field(kw_only=False)
    body: Callable[[Form], Any] = _as_typed
    says: Callable[[Any], str] = says_done
    leads: Callable[[Any, Form], str] | None = None
    shows: str | None = None
    place: str = ""

    @property
    def route(self) -> Route:
        return ROUTE_OF[self.handler]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a page gives that has nothing to show besides what another page shows better: the path of that one."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """`section`: under which heading of the navigation it stands. `asks`: the type of its query, `dear`: as a route has it, `place`: where the form of it is, if
    not at the top. `actions`: by the last part of the path that their forms are sent to."""

    path: str
    title: str
    section: str
    template: str
    handler: Callable[[Asked], Context | Elsewhere]
    scope: Permission
    reach: Reach
    asks: Any = None
    dear: bool = False
    place: str = ""
    actions: Mapping[str, Action] = field(default_factory=dict)

    @property
    def route(self) -> Route:
        """As the API's door looks at it."""
        return Route(
            method="GET", path=self.path, handler=self.handler, gives=None, scope=self.scope, reach=self.reach, asks=self.asks,
            dear=self.dear,
        )  # fmt: skip

    def action_path(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"


def back_to(path: str, form: Form, names: Iterable[str]) -> str:
    """The list that one came from, by the fields of its filter that a form carries along."""
    query = urlencode({name: form[name] for name in names if form.get(name)})
    return f"{path}?{query}" if query else path


def navigation(pages: Sequence[Page], sees: Collection[str] | None = None) -> list[tuple[Page, str]]:
    """The pages at the side, each with the key that goes there: the first letter of its name that no page before it has. `sees`: the
    paths of those that are shown; a key is the same whoever looks."""
    found: list[tuple[Page, str]] = []
    for page in pages:
        if page.path.count("/") == 1 and "{" not in page.path:
            taken = {key for _, key in found}
            found.append((page, next(it for it in page.section.lower() if it.isalpha() and it not in taken)))
    return [(page, key) for page, key in found if sees is None or page.path in sees]
