"""What a worker says of itself: its code, its queues, its room, its pace."""

from collections import Counter
from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.config import Settings
from lateshift.errors import OptionInvalid
from lateshift.model.ids import MemberId, new_member_id
from lateshift.model.job import Lane
from lateshift.model.member import (
    QUEUES_DECLARED,
    TASKS_TOLD,
    VERSION_LIMIT,
    Program,
    Serves,
    program_of,
    served,
)
from lateshift.worker.introduction import Introduction
from lateshift.worker.starts import LINES_TOLD, WINDOW, Starts

LANES = {"pack": Lane.THREAD, "send": Lane.COROUTINE}


def test_a_program_without_a_version_is_known_by_its_tasks() -> None:
    same = program_of("shop", None, dict(reversed(LANES.items())))
    assert program_of("shop", None, LANES) == same
    assert len(same.version) == 8
    versions = [
        program_of("shop", None, lanes).version
        for lanes in (LANES, {"pack": Lane.THREAD}, LANES | {"more": Lane.THREAD}, LANES | {"pack": Lane.PROCESS})
    ]  # fmt: skip
    assert len(set(versions)) == 4


def test_a_program_with_a_version_has_that_one() -> None:
    assert program_of("shop", "2.3.1", LANES).version == "2.3.1"
    assert Lateshift("shop", version="2.3.1").version == "2.3.1"


def test_the_version_of_an_app_changes_with_its_tasks() -> None:
    app = Lateshift("shop")
    before = app.version

    @app.task
    async def pack() -> None: ...

    assert app.version != before
    assert app.program().tasks == {"pack": "coroutine"}


@pytest.mark.parametrize("version", ["", "v" * (VERSION_LIMIT + 1), 3, "a\0b"])
def test_a_version_that_cannot_be_kept_is_refused(version: Any) -> None:
    with pytest.raises(OptionInvalid, match="version"):
        Lateshift("shop", version=version)


def test_programs_are_the_same_if_all_they_say_is() -> None:
    digests = {
        program_of(app, version, lanes).digest
        for app in ("shop", "farm")
        for version in ("1", "2")
        for lanes in (LANES, {"pack": Lane.THREAD})
    }
    assert len(digests) == 8
    assert program_of("shop", "1", LANES).digest in digests


def test_a_program_of_very_many_tasks_tells_some_and_counts_the_rest() -> None:
    program = program_of("shop", None, {f"task {number:06}": Lane.THREAD for number in range(TASKS_TOLD + 5)})
    assert (len(program.tasks), program.left_out) == (TASKS_TOLD, 5)
    assert program.knows("task 000000") is True
    assert program.knows("task 010004") is None
    assert program_of("shop", None, LANES).knows("task 010004") is False


def test_a_program_tells_the_queues_that_it_declares_so_many_at_most() -> None:
    app = Lateshift("shop")

    @app.task(queue="mail")
    def send() -> None: ...

    app.queue("tight", max_ready=1)
    assert app.program().queues == ("mail", "tight")
    many = program_of("shop", "1", LANES, {f"q{number:05}" for number in range(QUEUES_DECLARED + 5)}).queues
    assert (many[0], len(many)) == ("q00000", QUEUES_DECLARED)


def test_a_worker_names_the_queues_that_it_serves_but_for_patterns() -> None:
    serves = Serves(
        app="shop", version="1", code="", queues=("mail", "img.*", "a?"), slots={}, heartbeat=30.0
    )  # fmt: skip
    assert serves.named == {"mail"}


@pytest.mark.parametrize(
    ("queue", "queues", "expected"),
    [
        ("mail", None, True),
        ("mail", ("mail",), True),
        ("mail", ("img.*",), False),
        ("img.a", ("x", "img.*"), True),
    ],
)
def test_queues_are_served_by_name_or_by_pattern(
    queue: str, queues: tuple[str, ...] | None, expected: bool
) -> None:
    assert served(queue, queues) is expected


# -- the introduction ------------------------------------------------------------------------------------------------


class Heard:
    """Members that hear an introduction once they have been joined."""

    def __init__(self) -> None:
        self.joined = False
        self.said: list[tuple[Serves, Program]] = []

    def introduce(self, id: MemberId, serves: Serves, program: Program) -> bool:
        if self.joined:
            self.said.append((serves, program))
        return self.joined


def test_a_worker_introduces_itself_until_it_is_heard_and_again_when_it_has_more_tasks() -> None:
    heard, me = Heard(), new_member_id()
    tasks: dict[str, Any] = {"pack": None}
    introduction = Introduction(
        heard,  # type: ignore[arg-type]
        tasks,
        Settings(queues=("mail",)),
        lambda: program_of("shop", None, dict.fromkeys(tasks, Lane.THREAD)),
    )

    def due() -> bool:
        return introduction.due

    introduction.give(me, {"thread": 3})
    assert due()

    heard.joined = True
    introduction.give(me, {"thread": 3})
    assert not due()

    tasks["send"] = None
    assert due()
    introduction.give(me, {"thread": 3})
    assert not due()
    [(first, program), (second, _)] = heard.said
    assert (first.queues, first.slots, first.heartbeat, first.code) == (
        ("mail",),
        {"thread": 3},
        30.0,
        program.digest,
    )
    assert first.code != second.code


# -- the pace --------------------------------------------------------------------------------------------------------


def test_the_pace_is_that_of_the_last_whole_window() -> None:
    now = 0.0
    starts = Starts(lambda: now)
    starts.add(Counter({("mail", Lane.THREAD): 30, ("mail", Lane.COROUTINE): 1}))
    assert starts.per_second() == {}
    now = WINDOW
    starts.add(Counter({("mail", Lane.THREAD): 3}))
    assert starts.per_second() == {"mail": {"thread": 3.3, "coroutine": 0.1}}
    now = WINDOW * 1.5
    assert starts.per_second() == {"mail": {"thread": 3.3, "coroutine": 0.1}}
    now = WINDOW * 2
    assert starts.per_second() == {}


def test_only_the_busiest_lines_are_told() -> None:
    now = 0.0
    starts = Starts(lambda: now)
    starts.add(Counter({(f"queue {number}", Lane.THREAD): number for number in range(LINES_TOLD + 10)}))
    now = WINDOW
    told = starts.per_second()
    assert len(told) == LINES_TOLD
    assert f"queue {LINES_TOLD + 9}" in told
