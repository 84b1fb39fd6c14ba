"""What is asked of a server that is killed: requests with an Idempotency-Key, and how often each was done, counted in the tables."""

import re
from dataclasses import dataclass
from typing import Any

import httpx

from lateshift.model.access import Scope
from lateshift.model.scheduling.plan import Plan
from lateshift.model.scheduling.schedule import NewSchedule
from lateshift.model.scheduling.timing import Timing
from tests.api.asking import token_of
from tests.crash.checker import change, query
from tests.crash.scene import Group, Scene

NAME = "caller"  # of the token, as the audit has it
PATIENCE = 60.0  # seconds for one answer
KILLED = -9

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@dataclass(frozen=True, slots=True)
class Deed:
    """`count`: how often it shows in the store; `action`: how it stands in the audit. `undo`: behind the product's back, so that it
    would show if it were done again. In SQL, with {} for the schema; what is done `limit` times has more to be done to."""

    path: str
    action: str
    count: str
    body: dict[str, Any] | None = None
    undo: str | None = None

    def shows(self, scene: Scene) -> int:
        return counted(scene, self.count)

    def audited(self, scene: Scene) -> int:
        return counted(scene, f"SELECT count(*) FROM {{}}audit WHERE actor = 'token {NAME}' AND action = '{self.action}'")  # fmt: skip


PAUSE = Deed(
    "/v1/queues/slowed/pause", "pause",
    "SELECT count(*) FROM {}queue WHERE name = 'slowed' AND paused_at IS NOT NULL",
    undo="UPDATE {}queue SET paused_at = NULL, paused_by = NULL WHERE name = 'slowed'",
)  # fmt: skip
RESUBMIT = Deed(
    "/v1/dead-letters/resubmit", "resubmit", "SELECT count(*) FROM {}job WHERE queue = 'graves'",
    {"queue": "graves", "limit": 1},
)  # fmt: skip
CANCEL = Deed(
    "/v1/bulk", "cancel", "SELECT count(*) FROM {}settled WHERE queue = 'line'",
    {"action": "cancel", "queue": "line", "limit": 1},
)  # fmt: skip
SCHEDULE = Deed(
    "/v1/tasks/quick/schedules", "add", "SELECT count(*) FROM {}schedule WHERE name = 'nightly'",
    {"name": "nightly", "cron": "0 2 * * *", "arguments": {"number": 1}},
    undo="DELETE FROM {}schedule WHERE name = 'nightly'",
)  # fmt: skip
FIRE = Deed("/v1/schedules/yearly/fire", "fire", "SELECT count(*) FROM {}job WHERE queue = 'fired'")
KEPT = (PAUSE, RESUBMIT, CANCEL, SCHEDULE, FIRE)  # deeds whose answers are kept
TOKEN = Deed(
    "/v1/tokens", "create", "SELECT count(*) FROM {}token WHERE name = 'ci'", {"name": "ci", "scopes": ["read"]}
)  # fmt: skip


def prepare(scene: Scene) -> None:
    """What the deeds are done to, and more of it: two dead letters, two jobs that wait, a schedule that does not fire by itself."""
    quick = scene.app.find_task("quick")
    dead = [quick.options(queue="graves").enqueue(scene.number()).id for _ in range(2)]
    scene.app.store.jobs.cancel(dead, by="a test")
    write(scene, "UPDATE {}settled SET state = 6, reason = 'exhausted' WHERE queue = 'graves'")
    for _ in range(2):
        quick.options(queue="line").enqueue(scene.number())
    plan = Plan(timing=Timing(cron="0 0 1 1 *"), overlap="allow")
    fired = quick.options(queue="fired").call(0).job
    assert scene.app.store.schedules.add(NewSchedule(name="yearly", plan=plan, job=fired), by="a test")


class Caller:
    """A client with a token that may do all. Its requests have keys."""

    def __init__(self, scene: Scene) -> None:
        self.headers = {"Authorization": f"Bearer {token_of(scene.app, NAME, [Scope.ADMIN])}"}

    def ask(self, server: Group, path: str, body: Any = None, *, key: str = "k1") -> httpx.Response | None:
        """None if the server died on it."""
        headers = self.headers | {"Idempotency-Key": key}
        try:
            return httpx.post(
                address(server) + path, json=body, headers=headers, trust_env=False, timeout=PATIENCE
            )
        except httpx.TransportError:
            return None

    def ask_and_kill(self, scene: Scene, point: str, path: str, body: Any = None, *, key: str = "k1") -> None:
        """At a server of its own, which is killed at this point."""
        server = scene.server(crash=f"{point}:1:kill")
        assert self.ask(server, path, body, key=key) is None
        scene.hit()
        assert server.wait() == KILLED


def address(server: Group) -> str:
    return str(ADDRESS.findall(server.log.read_text())[0])


def counted(scene: Scene, sql: str) -> int:
    [(count,)] = query(scene.url, sql.format(""), sql.format("lateshift."))
    return int(count)


def write(scene: Scene, sql: str) -> None:
    change(scene.url, sql.format(""), sql.format("lateshift."))


def let_a_minute_pass(scene: Scene) -> None:
    """For requests that are under way: nobody holds them any more."""
    postgres = "UPDATE lateshift.answer SET until = until - interval '1 minute'"
    change(scene.url, "UPDATE answer SET until = until - 60000000", postgres)
