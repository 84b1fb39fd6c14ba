"""When a breaker opens, probes and closes: a table."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lateshift import Breaker
from lateshift.errors import OptionInvalid
from lateshift.model.breaker import LONGEST, MOST_FAILURES, REASON_LIMIT, Circuit, Verdict, after, verdict_of
from lateshift.model.gate import Gate, Gates
from lateshift.model.history import append
from lateshift.model.ids import new_job_id
from lateshift.model.job import AttemptRecord, Lane, Lease
from lateshift.model.outcome import LATE, Cancelled, Completed, DeadLettered, Later, Outcome, Settlement
from tests.store_contract.driving import DAY

PASSED, FAILED, NOTHING = True, False, None
BREAKER = Breaker(failures=3, share=0.5, within=timedelta(seconds=60), open_for=timedelta(seconds=30))


def told(*ends: bool | None) -> list[Verdict]:
    return [Verdict(f"job {number}", 1, end, "refused") for number, end in enumerate(ends)]


@pytest.mark.parametrize(
    ("rounds", "opens"),
    [
        pytest.param([[FAILED, FAILED]], False, id="too few"),
        pytest.param([[FAILED, FAILED, FAILED]], True, id="in a row, in one round"),
        pytest.param([[FAILED], [FAILED], [FAILED]], True, id="in a row, in several"),
        pytest.param([[FAILED, FAILED], [PASSED], [FAILED]], True, id="half of all, and as many as it takes"),
        pytest.param([[FAILED, FAILED], [PASSED] * 10, [FAILED]], False, id="many, but few of all"),
        pytest.param([[PASSED] * 1000, [FAILED], [FAILED], [FAILED]], True, id="in a row, after a thousand"),
        pytest.param([[PASSED, PASSED], [FAILED, PASSED, FAILED]], False, id="none in a row, and two"),
        pytest.param([[NOTHING] * 100], False, id="nothing was said"),
        pytest.param([[FAILED, FAILED], [NOTHING], [FAILED]], True, id="nothing said between does not count"),
        pytest.param([[PASSED] * 3 + [FAILED] * 3], True, id="half of all in one round"),
    ],
)
def test_it_opens_after_failures_in_a_row_or_when_they_are_too_many_of_all(
    rounds: list[list[bool | None]], opens: bool
) -> None:
    circuit = Circuit(name="payments", since=0.0)
    for number, ends in enumerate(rounds):
        circuit = after(BREAKER, circuit, told(*ends), float(number))
    assert circuit.is_open is opens


def test_what_failed_before_the_window_does_not_count_as_a_share_of_all() -> None:
    circuit = after(BREAKER, Circuit(name="a", since=0.0), told(FAILED, FAILED, PASSED), 1.0)
    later = after(BREAKER, circuit, told(FAILED, PASSED), 61.0)
    assert (later.failed, later.passed, later.since, later.is_open) == (1, 1, 61.0, False)


def test_a_clock_that_was_set_back_begins_another_window() -> None:
    circuit = after(BREAKER, Circuit(name="a", since=1000.0), told(FAILED), 5.0)
    assert (circuit.since, circuit.failed) == (5.0, 1)


def opened(at: float = 100.0) -> Circuit:
    circuit = after(BREAKER, Circuit(name="a", since=at), told(FAILED, FAILED, FAILED), at)
    assert circuit.is_open
    return circuit


def test_it_says_when_it_opened_why_and_when_one_may_probe() -> None:
    circuit = opened(100.0)
    assert (circuit.opened_at, circuit.probe_at, circuit.reason) == (100.0, 130.0, "refused")
    assert not circuit.lets_one_through(129.9)
    assert circuit.lets_one_through(130.0)


def test_while_it_is_open_only_the_probe_counts() -> None:
    circuit = opened()
    assert after(BREAKER, circuit, told(PASSED, PASSED), 110.0) == circuit


def probing() -> Circuit:
    circuit = opened(100.0)
    circuit.probe, circuit.probe_fence, circuit.probing = "job 0", 1, True
    return circuit


def test_while_a_probe_runs_no_other_is_let_through() -> None:
    assert not probing().lets_one_through(1000.0)


def test_a_probe_that_succeeds_closes_it_and_all_is_counted_anew() -> None:
    circuit = after(BREAKER, probing(), told(PASSED), 140.0)
    assert circuit == Circuit(name="a", since=140.0, passed=1)


def test_a_probe_that_fails_puts_the_next_one_off() -> None:
    circuit = after(BREAKER, probing(), [Verdict("job 0", 1, FAILED, "still refused")], 140.0)
    assert (circuit.opened_at, circuit.probe_at, circuit.probe) == (100.0, 170.0, None)
    assert circuit.reason == "still refused"


def test_a_probe_that_says_nothing_lets_another_through_at_once() -> None:
    circuit = after(BREAKER, probing(), told(NOTHING), 140.0)
    assert circuit.lets_one_through(140.0)


def test_an_older_attempt_of_the_probes_job_is_not_the_probe() -> None:
    assert after(BREAKER, probing(), [Verdict("job 0", 0, PASSED)], 140.0) == probing()


def test_what_an_operator_has_opened_nobody_probes_or_closes() -> None:
    circuit = probing()
    circuit.opened_by = "ann"
    assert not circuit.lets_one_through(1000.0)
    assert after(BREAKER, circuit, told(PASSED), 140.0).is_open


def test_a_long_reason_is_cut() -> None:
    circuit = after(
        Breaker(failures=1), Circuit(name="a", since=0.0), [Verdict("j", 1, FAILED, "x" * 9999)], 1.0
    )
    assert circuit.reason == "x" * REASON_LIMIT


HISTORY = append(
    None,
    AttemptRecord(
        attempt=1,
        fence=1,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        reason="failed",
        error="OSError",
        message="no route",
    ),
)


@pytest.mark.parametrize(
    ("outcome", "probe", "says"),
    [
        pytest.param(Completed(None, DAY), False, PASSED, id="completed"),
        pytest.param(
            DeadLettered("permanent", HISTORY, DAY), False, PASSED, id="a permanent fault is an answer"
        ),
        pytest.param(
            DeadLettered("result_not_kept", HISTORY, DAY), False, PASSED, id="it cannot say what it did"
        ),
        pytest.param(DeadLettered("exhausted", HISTORY, DAY), False, FAILED, id="exhausted"),
        pytest.param(DeadLettered("complete_by", HISTORY, DAY), False, FAILED, id="it hung"),
        pytest.param(DeadLettered("undecodable", HISTORY, DAY), False, NOTHING, id="it was never called"),
        pytest.param(Later(timedelta(0), True, HISTORY), False, FAILED, id="another try follows"),
        pytest.param(Later(timedelta(0), False), False, NOTHING, id="handed back, or put off"),
        pytest.param(Later(timedelta(0), False, HISTORY), True, FAILED, id="a probe that failed"),
        pytest.param(Later(timedelta(0), False), True, NOTHING, id="a probe that was handed back"),
        pytest.param(Cancelled("cancelled by ann", DAY), False, NOTHING, id="an operator cancelled it"),
        pytest.param(Cancelled(f"cancelled by {LATE}", DAY), False, NOTHING, id="its step was late"),
    ],
)
def test_what_the_end_of_an_attempt_says_of_the_service(
    outcome: Outcome, probe: bool, says: bool | None
) -> None:
    lease = Lease(new_job_id(), 1, "charge", b"", 1, 3, None, "payments", Lane.GUARDED, probe=probe)
    verdict = verdict_of(Settlement(lease, outcome), lease.id)
    assert verdict.passed is says
    if says is FAILED and getattr(outcome, "history", None):
        assert verdict.why == "OSError: no route"


def test_one_of_many_is_let_through_as_the_probe() -> None:
    gates = Gates({"charge": [Gate("charge", "a")]}, now=200.0, circuits={"a": opened()})
    assert gates.shut("charge", "q") is None
    gates.let_through("charge", "q", "job 1")
    assert gates.shut("charge", "q") == "breaker:a"
    assert gates.probes == {"a": "job 1"}
    assert gates.shut("mail", "q") is None


def test_as_many_are_let_through_as_there_is_room_behind() -> None:
    gates = Gates({"parse": [Gate("parse", "images", 10, "q")]}, now=0.0, rooms={"images": 2})
    for job in range(2):
        assert gates.shut("parse", "q") is None
        gates.let_through("parse", "q", job)
    assert gates.shut("parse", "q") == "room:images"


def test_of_a_breaker_by_version_each_version_has_a_circuit() -> None:
    circuit = opened()
    circuit.name = "a@2.0"
    before = {"charge": [Gate("charge", "a", by_version=True)]}
    new = Gates(before, 101.0, version="2.0", circuits={"a@2.0": circuit})
    old = Gates(before, 101.0, version="1.0", circuits={"a@2.0": circuit})
    assert (new.shut("charge", "q"), old.shut("charge", "q")) == ("breaker:a@2.0", None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"failures": 0}, {"failures": MOST_FAILURES + 1}, {"failures": 2.5}, {"failures": True}, {"share": 0}, {"share": 1.1},
        {"share": "half"}, {"share": float("nan")}, {"within": timedelta(0)}, {"within": 60}, {"open_for": LONGEST * 2},
        {"open_for": timedelta(seconds=-1)}, {"by_version": "yes"},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_breaker_is_refused_where_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionInvalid, match=f"Breaker: {next(iter(wrong))}"):
        Breaker(**wrong)
