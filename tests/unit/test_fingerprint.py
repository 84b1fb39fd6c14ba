"""Fingerprints: what differs from job to job does not count, what tells faults apart does."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from lateshift.model.fingerprint import FINGERPRINT, blanked, fingerprint
from lateshift.model.groups import GROUPS_KEPT, Groups
from lateshift.model.ids import new_job_id
from lateshift.model.job import AttemptRecord, JobView, State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRACE = (
    'Traceback:\n  File "/srv/1/shop.py", line {line}, in pack\n  File "/srv/1/shop.py", line 9, in {last}\n'
)


def dead(
    message: str = "no order 7", *, task: str = "pack", reason: str = "exhausted", **more: Any
) -> JobView:
    record = AttemptRecord(
        attempt=1, fence=1, at=NOW, reason="failed", message=message, **({"error": "ValueError"} | more)
    )
    return JobView(
        id=new_job_id(), task=task, queue="default", state=State.DEAD, priority=0, attempt=1, attempts=1, fence=1,
        losses=0, created_at=NOW, due_at=NOW, started_at=None, complete_by=None, settled_at=NOW, holder=None,
        cancel_requested=False, payload=b"{}", result=None, reason=reason, progress=None, checkpoint=None,
        history=[record], exclusive=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("no order -17", "no order #"),
        ("took 3.5s of 10s", "took # of #"),
        ("no customer 'Ana O\\'Hara', no \"x y\"", "no customer #, no #"),
        ("don't say 'hello and no more", "don't say #"),
        ("job 0190f5e2-7c3a-7b12-9abc-def012345678 and deadbeefcafe", "job # and #"),
        ("<Order object at 0x7f3a12>", "<Order object at #>"),
        ("cannot open /srv/app/4/in.csv or C:\\data\\in.csv", "cannot open # or #"),
        ("data/2026/in.csv is missing and/or empty", "# is missing and/or empty"),
        ("https://shop.example/a?b=1 said 500", "# said #"),
        ("ids [1, 2, 3]", "ids [#]"),
        ("at 2026-01-02T10:00:00.123+00:00", "at #"),
        ("expected `int`, got `str`", "expected `int`, got `str`"),
    ],
)
def test_numbers_ids_quotes_and_paths_are_blanked(text: str, left: str) -> None:
    assert blanked(text) == left


def test_the_same_fault_has_the_same_fingerprint_whatever_its_numbers() -> None:
    assert fingerprint(dead("no order 7 in 'a'")) == fingerprint(dead("no order 812 in 'bb'"))
    assert FINGERPRINT.fullmatch(fingerprint(dead()))


@pytest.mark.parametrize("cycle", [("f",), ("walk", "visit")])
def test_how_deep_functions_had_called_themselves_does_not_count(cycle: tuple[str, ...]) -> None:
    def trace(depth: int) -> str:
        frames = ["run", "deep", *cycle * depth]
        return "Traceback:\n" + "".join(f'  File "/srv/shop.py", line 9, in {name}\n' for name in frames)

    assert len({fingerprint(dead(traceback=trace(depth))) for depth in (1, 2, 3, 40)}) == 1
    assert fingerprint(dead(traceback=trace(2))) != fingerprint(
        dead(traceback=trace(2) + '  File "x", line 1, in g\n')
    )


def test_lists_of_any_length_are_the_same() -> None:
    assert fingerprint(dead("missing ['a', 'b']")) == fingerprint(dead("missing ['c', 'd', 'e', 'f']"))


def test_task_reason_error_and_wording_tell_faults_apart() -> None:
    faults = [
        dead(), dead(task="ship"), dead(reason="permanent"), dead(error="KeyError"), dead("no customer 7"),
        dead(error=None),
    ]  # fmt: skip

    assert len({fingerprint(view) for view in faults}) == len(faults)


def test_the_place_in_the_code_counts_but_not_its_line() -> None:
    here = dead(traceback=TRACE.format(line=3, last="charge"))

    assert fingerprint(here) == fingerprint(dead(traceback=TRACE.format(line=88, last="charge")))
    assert fingerprint(here) != fingerprint(dead(traceback=TRACE.format(line=3, last="refund")))


def test_a_dead_letter_without_a_history_has_one_too() -> None:
    assert FINGERPRINT.fullmatch(fingerprint(replace(dead(), history=[])))


def test_a_message_that_was_cut_in_the_middle_of_a_quote_is_still_the_same() -> None:
    assert fingerprint(dead("bad row '" + "x" * 2000)) == fingerprint(dead("bad row 'y'"))


def test_groups_are_bounded_and_count_what_they_leave_out() -> None:
    groups = Groups()
    for number in range(GROUPS_KEPT + 5):
        groups.add(dead(task=f"task-{number}"))

    assert (len(groups.largest_first), groups.left_out, groups.looked_at) == (GROUPS_KEPT, 5, GROUPS_KEPT + 5)
