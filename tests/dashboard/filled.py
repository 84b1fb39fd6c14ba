"""What every page and every form is asked with, of things that are there, so that it would be shown or done for whoever may. One that
does not stand here fails the tests that are made of all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lateshift.dashboard.page import Action, Page
from lateshift.dashboard.pages.all import PAGES
from tests.dashboard.attic import ATTIC, Attic

OF_ATTIC = {"queue": ATTIC}


@dataclass(frozen=True)
class Filled:
    """`names`: of the path's parameters. `fields`: of the query, or of the form. `besides`: they ask for the route's second scope."""

    names: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    besides: bool = False

    def path(self, path: str) -> str:
        for name, value in self.names.items():
            path = path.replace(f"{{{name}:path}}", value).replace(f"{{{name}}}", value)
        assert "{" not in path, f"{path}: tests/dashboard/filled.py does not say what stands there"
        return path


@dataclass(frozen=True)
class Form:
    """A form of a page."""

    page: Page
    name: str

    @property
    def action(self) -> Action:
        return self.page.actions[self.name]

    @property
    def path(self) -> str:
        return self.page.action_path(self.name)

    @property
    def only_shows(self) -> bool:
        """It changes nothing, whoever sends it."""
        return self.name.endswith("preview")


Filling: TypeAlias = Callable[[Attic], Filled]
FORMS = [Form(page, name) for page in PAGES for name in page.actions]


SHOWN: Mapping[str, Filling] = {
    "/": lambda it: Filled(it.dead()),
    "/overview/table": lambda it: Filled({}, OF_ATTIC),
    "/jobs": lambda it: Filled(it.waiting(), OF_ATTIC),
    "/jobs/{id}": lambda it: Filled(it.waiting()),
    "/dead-letters": lambda it: Filled(it.dead(), OF_ATTIC),
    "/dead-letters/{name}": lambda it: Filled(it.group(), OF_ATTIC),
    "/workflows": lambda it: Filled(it.run()),
    "/workflows/{id}": lambda it: Filled(it.run()),
    "/pipelines": lambda it: Filled(it.pipeline()),
    "/pipelines/{name:path}": lambda it: Filled(it.pipeline()),
    "/batches": lambda it: Filled(it.batch()),
    "/batches/{id}": lambda it: Filled(it.batch()),
    "/queues": lambda it: Filled(it.queue()),
    "/queues/{name}": lambda it: Filled(it.queue()),
    "/schedules": lambda it: Filled(it.schedule()),
    "/schedules/{name:path}": lambda it: Filled(it.schedule()),
    "/triggers": lambda it: Filled(it.trigger()),
    "/triggers/{name:path}": lambda it: Filled(it.trigger()),
    "/breakers": lambda it: Filled(it.breaker()),
    "/breakers/{name:path}": lambda it: Filled(it.breaker()),
    "/members": lambda it: Filled(it.member()),
    "/tokens": lambda it: Filled(it.token()),
    "/audit": lambda it: Filled({}, it.line()),
}

SENT: Mapping[str, Filling] = {
    "/jobs/preview": lambda it: Filled({}, {"action": "cancel", "ids": it.waiting()["id"]}),
    "/jobs/bulk": lambda it: Filled({}, {"action": "cancel", "ids": it.waiting()["id"]}),
    "/jobs/{id}/cancel": lambda it: Filled(it.waiting()),
    "/jobs/{id}/resubmit": lambda it: Filled(it.dead()),
    "/jobs/{id}/edit": lambda it: Filled(it.dead(), {"arguments": '{"to": "bob"}'}, besides=True),
    "/dead-letters/preview": lambda it: Filled(it.dead(), OF_ATTIC | {"change": '{"to": "bob"}'}, besides=True),
    "/dead-letters/resubmit": lambda it: Filled(it.dead(), OF_ATTIC | {"change": '{"to": "bob"}'}, besides=True),
    "/dead-letters/{name}/preview": lambda it: Filled(it.group(), OF_ATTIC),
    "/dead-letters/{name}/discard-preview": lambda it: Filled(it.group(), OF_ATTIC),
    "/dead-letters/discard-preview": lambda it: Filled(it.unwanted(), OF_ATTIC),
    "/dead-letters/discard": lambda it: Filled({}, {"ids": it.unwanted()["id"]}),
    "/jobs/{id}/discard-preview": lambda it: Filled(letter := it.unwanted(), {"ids": letter["id"]}),
    "/workflows/{id}/signal": lambda it: Filled(it.run(), {"name": "picked"}),
    "/workflows/{id}/resume": lambda it: Filled(it.run("bad")),
    "/workflows/{id}/undo": lambda it: Filled(it.run(), {"why": "a test"}),
    "/workflows/{id}/cancel": lambda it: Filled(it.run()),
    "/workflows/{id}/steps/{step}/resubmit": lambda it: Filled(
        it.run("bad") | {"step": "1"}, {"of": "1", "arguments": '{"card": "good"}'}, besides=True
    ),
    "/batches/{id}/cancel": lambda it: Filled(it.batch()),
    "/queues/{name}/pause": lambda it: Filled(it.queue()),
    "/queues/{name}/resume": lambda it: Filled(it.queue(paused=True)),
    "/queues/{name}/release": lambda it: Filled(it.queue(), it.session()),
    "/schedules/{name:path}/pause": lambda it: Filled(it.schedule()),
    "/schedules/{name:path}/resume": lambda it: Filled(it.schedule(paused=True)),
    "/schedules/{name:path}/fire": lambda it: Filled(it.schedule()),
    "/schedules/{name:path}/backfill": lambda it: Filled(it.schedule(), it.past()),
    "/schedules/{name:path}/edit": lambda it: Filled(it.schedule(), {"arguments": '{"to": "bob"}'}, besides=True),
    "/schedules/{name:path}/remove": lambda it: Filled(it.schedule()),
    "/triggers/{name:path}/pause": lambda it: Filled(it.trigger()),
    "/triggers/{name:path}/resume": lambda it: Filled(it.trigger(paused=True)),
    "/triggers/{name:path}/refused/{id}/retry": lambda it: Filled(it.trigger()),
    "/triggers/{name:path}/refused/{id}/discard": lambda it: Filled(it.trigger()),
    "/triggers/{name:path}/retry": lambda it: Filled(it.trigger()),
    "/breakers/{name:path}/open": lambda it: Filled(it.breaker()),
    "/breakers/{name:path}/close": lambda it: Filled(it.breaker(opened=True)),
    "/tokens/create": lambda it: Filled({}, {"name": "heirloom-token", "scopes": "read"}),
    "/tokens/{id}/revoke": lambda it: Filled(it.token()),
}  # fmt: skip


def shown(page: Page, attic: Attic) -> Filled:
    """Raises AssertionError for a page that this file does not know."""
    assert page.path in SHOWN, f"say in tests/dashboard/filled.py with what the page {page.path} is asked for"
    return SHOWN[page.path](attic)


def sent(form: Form, attic: Attic) -> Filled:
    """Raises AssertionError for a form that this file does not know."""
    assert form.path in SENT, f"say in tests/dashboard/filled.py what is typed into the form {form.path}"
    return SENT[form.path](attic)
