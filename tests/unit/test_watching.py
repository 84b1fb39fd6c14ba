"""The events of a job as they follow from how it stands: each at its place, none twice, none after the end."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lateshift.errors import OptionInvalid
from lateshift.model.events import RESULT_TOLD, Kind
from lateshift.model.instants import to_number
from lateshift.model.job import STRETCHES, JobView, Progress, Saying, State
from lateshift.model.sealed import WEBHOOK
from lateshift.model.watching import BEGINNING, Position, bare, events, news, read, written
from tests.unit.explaining import AT, failed, view

ENDED = to_number(AT)


def running(fence: int = 1, **changes: Any) -> JobView:
    return view(State.RUNNING, **{"fence": fence, "attempt": fence, "started_at": AT} | changes)


def ended(state: State = State.COMPLETED, fence: int = 1, **changes: Any) -> JobView:
    return view(state, **{"fence": fence, "attempt": fence, "started_at": AT, "settled_at": AT} | changes)


@pytest.mark.parametrize(
    ("seen", "kinds"),
    [
        (view(), "received"),
        (view(State.SCHEDULED), "received"),
        (view(State.BLOCKED), "received"),
        (running(), "received started"),
        (running(progress=Progress(1, 2)), "received started progress"),
        (view(State.SCHEDULED, fence=1, history=[failed(1, 1)]), "received started retrying"),
        (running(2, history=[failed(1, 1)]), "received started retrying started"),
        (view(fence=1), "received"),  # handed back
        (ended(), "received started completed"),
        (ended(progress=Progress(1)), "received started progress completed"),
        (
            ended(State.DEAD, 2, history=[failed(1, 1), failed(2, 2)]),
            "received started retrying started failed",
        ),
        (ended(State.CANCELLED, 0, started_at=None), "received cancelled"),
        (ended(State.CANCELLED, 1, history=[failed(1, 1)]), "received started cancelled"),
        (running(1, history=[failed(1, 1, was={"a": 1}, reason="resubmitted")]), "received started"),
        (running(7, attempts=STRETCHES, history=[failed(1, 3)]), "received started"),
        (ended(fence=7, attempts=STRETCHES), "received started completed"),
    ],
)
def test_what_has_become_of_a_job_follows_from_how_it_stands(seen: JobView, kinds: str) -> None:
    told = events(seen)

    assert [event.kind for _, event in told] == kinds.split()
    assert [place for place, _ in told] == sorted({place for place, _ in told})


def test_a_failure_says_what_was_raised_and_a_result_is_told() -> None:
    died = ended(
        State.DEAD, reason="exhausted", history=[failed(1, 1, error="ValueError", message="no paper")]
    )
    (_, last) = events(died)[-1]
    assert (last.reason, last.error) == ("exhausted", "ValueError: no paper")
    (_, last) = events(ended(result=b"[1]"))[-1]
    assert last.result == [1]


def test_only_progress_that_has_changed_is_told_again() -> None:
    before = running(progress=Progress(1))
    assert [event.kind for _, event in news(None, (1, 2, 0), before)] == ["progress"]
    assert news(before, (1, 3, 0), before) == []
    assert [event.progress for _, event in news(before, (1, 3, 0), running(progress=Progress(2)))] == [
        Progress(2)
    ]
    assert [event.kind for _, event in news(before, (1, 3, 0), ended(progress=Progress(2)))] == ["completed"]


def said(number: int, *, fence: int = 1, seconds: float = 0.0) -> dict[str, Any]:
    return {
        "progress": Progress(number, 5),
        "said": Saying(fence, number, AT + timedelta(seconds=seconds)),
    }


def test_each_word_of_progress_has_a_place_of_its_own_and_its_own_time() -> None:
    words = [running(**said(number, seconds=number)) for number in (1, 2, 4)]
    told = [events(word)[-1] for word in words]

    assert [written(place) for place, _ in told] == ["1.3.1", "1.3.2", "1.3.4"]
    assert len({event.id for _, event in told}) == 3
    assert [event.at for _, event in told] == [AT + timedelta(seconds=number) for number in (1, 2, 4)]
    assert news(None, (1, 3, 4), words[-1]) == []
    assert [place for place, _ in news(None, (1, 3, 2), words[-1])] == [(1, 3, 4)]
    assert [place for place, _ in news(words[0], (1, 3, 1), ended(**said(5)))] == [(1, 3, 5), (1, 5, ENDED)]


def test_whoever_has_the_place_of_an_older_release_is_told_the_newest_progress_rather_than_none() -> None:
    assert [place for place, _ in news(None, read("1.3"), running(**said(2)))] == [(1, 3, 2)]


def test_a_job_that_was_resubmitted_and_cancelled_before_its_next_lease_has_ended_anew() -> None:
    died = ended(State.DEAD, history=[failed(1, 1)])
    cancelled = replace(died, state=State.CANCELLED, settled_at=AT + timedelta(seconds=3))
    first, first_end = events(died)[-1]
    [(second, second_end)] = news(None, first, cancelled)

    assert (first_end.kind, second_end.kind) == ("failed", "cancelled")
    assert first_end.id != second_end.id
    assert news(None, second, cancelled) == []
    assert [event.kind for _, event in news(None, read("1.5"), died)] == ["failed"]  # of an older release


@pytest.mark.parametrize(
    "moved", [timedelta(hours=-1), timedelta(microseconds=-1), timedelta(hours=1)], ids=str
)
def test_the_next_end_under_one_fence_is_told_also_if_the_clock_went_back(moved: timedelta) -> None:
    first = ended(State.CANCELLED, 1)
    [*_, (seen, _)] = events(first)
    again = replace(first, state=State.READY, settled_at=None)
    second = ended(State.CANCELLED, 1, settled_at=AT + moved)

    assert news(first, seen, again) == []
    for before in (None, again):
        [(place, event)] = news(before, seen, second)
        assert (event.kind, event.at) == ("cancelled", AT + moved)
        assert news(None, place, second) == []


def test_progress_stays_with_the_attempt_that_told_it() -> None:
    """A row keeps it until the next attempt has told something."""
    again = running(2, history=[failed(1, 1)], **said(3))
    told = events(again)

    assert [event.kind for _, event in told] == ["received", "started", "progress", "retrying", "started"]
    assert [event.attempt for _, event in told] == [0, 1, 1, 1, 2]
    assert news(None, (2, 2, 0), again) == []


def test_the_times_of_a_job_never_go_back_whatever_a_worker_s_clock_says() -> None:
    for hours in (-2, 0, 2):
        wrong = failed(1, 1, at=AT + timedelta(hours=hours))
        for seen in (
            running(2, history=[wrong], **said(1, fence=2, seconds=hours * 3600)),
            ended(State.COMPLETED, 2, history=[wrong], **said(1, fence=2, seconds=hours * 3600)),
        ):
            times = [event.at for _, event in events(seen)]
            assert times == sorted(times)
            assert seen.settled_at is None or times[-1] == seen.settled_at


def test_a_place_is_read_as_it_is_written() -> None:
    for place in (BEGINNING, (0, 1, 0), (12, 5, 0), (12, 3, 7), (12, 5, ENDED)):
        assert read(written(place)) == place
    for wrong in (
        "",
        ".",
        "1",
        "1.",
        "1.12",
        "1.6",
        "1.3.0",
        "1.3.01",
        "1.3.",
        "1.2.1",
        "1.3.1.1",
        "²5.1",
        "1.²",
        "-1.1",
        "9" * 19 + ".1",
    ):
        with pytest.raises(OptionInvalid):
            read(wrong)


LIVES = st.lists(st.sampled_from(["fail", "hand back", "progress", "wait"]), max_size=12).flatmap(
    lambda steps: st.tuples(st.just(steps), st.sampled_from(["complete", "die", "cancel"]))
)


def life(steps: list[str], end: str) -> list[JobView]:
    """Every way in which a job stands, one after the other."""
    views, now = [view()], view()
    for step in steps:
        fence = now.fence + 1
        now = replace(now, state=State.RUNNING, fence=fence, attempt=now.attempt + 1, started_at=AT)
        views.append(now)
        if step == "progress":
            for number in (1, 2):
                now = replace(now, progress=Progress(number), said=Saying(fence, number, AT))
                views.append(now)
        if step == "fail":
            now = replace(now, history=[*now.history, failed(now.attempt, fence)])
        if step == "hand back":
            now = replace(now, attempt=now.attempt - 1)
        now = replace(now, state=State.SCHEDULED if step == "wait" else State.READY, started_at=None)
        views.append(now)
    fence = now.fence + 1
    last = replace(now, state=State.RUNNING, fence=fence, attempt=now.attempt + 1, started_at=AT)
    history = [*last.history, failed(last.attempt, fence)] if end == "die" else last.history
    state = {"complete": State.COMPLETED, "die": State.DEAD, "cancel": State.CANCELLED}[end]
    return [*views, last, replace(last, state=state, settled_at=AT, history=history)]


@given(LIVES, st.data())
def test_whoever_looks_however_seldom_sees_each_place_once_in_order_and_the_end_last(
    lived: tuple[list[str], str], data: st.DataObject
) -> None:
    whole = life(*lived)
    looks = data.draw(st.lists(st.booleans(), min_size=len(whole) - 1, max_size=len(whole) - 1))
    seen = [each for each, looked in zip(whole, [*looks, True], strict=True) if looked]
    after: Position = BEGINNING
    before: JobView | None = None
    places: list[Position] = []
    kinds: list[str] = []
    for now in seen:
        for place, event in news(before, after, now):
            after = max(after, place)
            places.append(place)
            kinds.append(event.kind)
        before = now

    assert places == sorted(places)
    assert len(places) == len(set(places))
    assert kinds[0] == "received"
    assert [kind for kind in kinds if Kind[kind.upper()].last] == kinds[-1:]
    assert {place for place, _ in events(whole[-1])} <= set(
        places
    )  # what is known in the end was told on the way


@given(LIVES)
def test_somebody_who_comes_back_after_any_event_misses_none(lived: tuple[list[str], str]) -> None:
    last = life(*lived)[-1]
    whole = [place for place, _ in events(last)]
    for position, place in enumerate(whole):
        assert [each for each, _ in news(None, place, last)] == whole[position + 1 :]


SEALED = b'"sealed:1:key:payload:' + b"A" * 10_000 + b'"'
KEPT = st.fixed_dictionaries(
    {
        "payload": st.sampled_from([b"{}", b'{"url":"https://a.b/c"}', b'"%s"' % (b"x" * 10_000), SEALED]),
        "result": st.sampled_from([None, b"7", b'"[sealed]"', SEALED, *(b'"%s"' % (b"x" * n) for n in (RESULT_TOLD - 2, RESULT_TOLD - 1, 90_000))]),
        "task": st.sampled_from(["pack", f"{WEBHOOK}vendor"]),
        "reason": st.sampled_from([None, "by ann"]),
        "sensitive": st.booleans(),
        "checkpoint": st.sampled_from([None, b"7" * 10_000]),
    }
)  # fmt: skip


@given(LIVES, KEPT)
def test_a_bare_job_has_the_same_events_and_nothing_large(
    lived: tuple[list[str], str], kept: dict[str, Any]
) -> None:
    secret = {"message": "sealed:1:key:message:A", "traceback": "x" * 8_000}
    resubmitted = failed(1, 1, reason="resubmitted", was={"text": "x" * 10_000})
    for each in life(*lived):
        lines = [replace(record, **secret) for record in each.history]
        whole = replace(each, **kept, history=[resubmitted, *lines])
        assert events(bare(whole)) == events(whole)
        assert len(msgspec.json.encode(bare(whole))) < 20_000
