"""Facts to explain: a job, its surroundings, and workers, each as a test wants them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lateshift.model.explaining.explain import explain
from lateshift.model.explaining.facts import Facts, Guard, Limit, Other
from lateshift.model.explaining.reason import Explanation
from lateshift.model.ids import MemberId, new_member_id
from lateshift.model.job import AttemptRecord, JobView, Lane, State
from lateshift.model.member import MemberView, Program, Serves

AT = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
ME = UUID("0195500a-0000-7000-8000-000000000001")
HEAD = UUID("0195500a-0000-7000-8000-00000000aaaa")
SLOTS = {"coroutine": 500, "thread": 16, "process": 2, "solo": 1}
SHOP = Program(app="shop", version="2.0", tasks={"pack": "thread", "send": "coroutine", "resize": "process"})


def after(**parts: float) -> datetime:
    return AT + timedelta(**parts)


def before(**parts: float) -> datetime:
    return AT - timedelta(**parts)


def view(state: State = State.READY, **changes: Any) -> JobView:
    fields: dict[str, Any] = {
        "id": ME, "task": "pack", "queue": "orders", "state": state, "priority": 0, "attempt": 0, "attempts": 5,
        "fence": 0, "losses": 0, "created_at": before(minutes=5), "due_at": before(minutes=5), "started_at": None,
        "complete_by": None, "settled_at": None, "holder": None, "cancel_requested": False, "payload": b"{}",
        "result": None, "reason": None, "progress": None, "checkpoint": None, "history": [], "exclusive": None,
    }  # fmt: skip
    return JobView(**fields | changes)


def worker(
    program: Program | None = SHOP,
    *,
    id: MemberId | None = None,
    queues: tuple[str, ...] = (),
    slots: dict[str, int] | None = None,
    stats: dict[str, Any] | None = None,
    dead: bool = False,
    left: float = 25.0,
    name: str = "worker 1",
    keys: tuple[str, ...] = (),
) -> MemberView:
    """`left`: seconds until it is dead, of thirty. Without a program it has not said what it serves."""
    serves = None
    if program is not None:
        serves = Serves(
            app=program.app, version=program.version, code=program.digest, queues=queues,
            slots=SLOTS if slots is None else slots, heartbeat=30.0, keys=keys,
        )  # fmt: skip
    return MemberView(
        id=id or new_member_id(), name=name, kind="worker", host="web-3", pid=7, started_at=before(hours=1),
        expires_at=after(seconds=left), dead=dead, stats=stats or {}, serves=serves,
    )  # fmt: skip


def other(id: UUID = HEAD, state: State = State.RUNNING, **changes: Any) -> Other:
    fields: dict[str, Any] = {"id": id, "task": "pack", "state": state, "due_at": before(minutes=9)}
    if state is State.RUNNING:
        fields["started_at"] = before(minutes=2)
    return Other(**fields | changes)


def tenant_limit(**changes: Any) -> Limit:
    fields: dict[str, Any] = {"scope": "key", "key": "tenant:7"}
    return Limit(**fields | changes)


def failed(attempt: int, fence: int, **changes: Any) -> AttemptRecord:
    fields: dict[str, Any] = {"attempt": attempt, "fence": fence, "at": before(minutes=1), "reason": "failed"}
    return AttemptRecord(**fields | changes)


def facts(job: JobView | None = None, *, programs: tuple[Program, ...] = (SHOP,), **changes: Any) -> Facts:
    """A supervisor leads and a worker is alive, unless a test says otherwise."""
    guard = changes.pop("guard", {})
    fields: dict[str, Any] = {
        "members": [worker()], "led_until": after(seconds=8), "at": AT, "job": job or view(),
        "guard": Guard(**{"lane": Lane.THREAD} | guard), "programs": {program.digest: program for program in programs},
    }  # fmt: skip
    return Facts(**fields | changes)


def explained(job: JobView | None = None, **changes: Any) -> Explanation:
    return explain(facts(job, **changes), UTC)


def codes(explanation: Explanation) -> list[str]:
    return [reason.code for reason in explanation.reasons]


def says(explanation: Explanation) -> dict[str, str]:
    return {reason.code: reason.says for reason in explanation.reasons}
