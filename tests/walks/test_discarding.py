"""Dead letters that nobody wants any more: seen first, then deleted, by a command and by code."""

from collections.abc import Iterator

import pytest

from lateshift import Lateshift, State
from lateshift.clock import ManualClock
from lateshift.dead_letters.discarding import DISCARD_MOST
from lateshift.model.discard import Kept
from lateshift.model.ids import JobId
from tests.store_contract.driving import added, make_job, see
from tests.walks.burying import bury, named
from tests.walks.commands import Cli

LONG_AGO = -600.0  # seconds: nobody repeats the enqueue of these any more


@pytest.fixture
def past(store_url: str) -> Iterator[Lateshift]:
    """An app of some minutes ago, on the store that commands see now."""
    clock = ManualClock()
    clock.move(seconds=LONG_AGO)
    app = Lateshift("shop", store=store_url, clock=clock)
    yield app
    app.close()


@pytest.fixture
def letters(past: Lateshift) -> list[JobId]:
    return [*bury(past, b'{"order":1}', b'{"order":2}'), *bury(past, b"{}", task="ship", reason="permanent")]


def left(app: Lateshift) -> int:
    return len(list(app.dead_letters()))


def test_those_that_are_named_are_deleted(cli: Cli, past: Lateshift, letters: list[JobId]) -> None:
    shown = cli("jobs", "discard", str(letters[0]), "--show")
    assert "1 job would be deleted for good. Nothing was written." in shown.out
    assert left(past) == 3
    assert cli("jobs", "discard", str(letters[0])[-8:]).out == "1 job discarded.\n"
    assert past.store.reports.job(letters[0]) is None
    again = cli("jobs", "discard", *named(letters), "--json")
    assert again.code == 4
    assert again.document["discarded"] == named(letters[1:])
    assert again.document["unchanged"] == [{"id": str(letters[0]), "state": None}]
    audit = past.store.audit.list(limit=10, action="discard")
    assert {row.subject for row in audit} == set(named(letters))


def test_what_is_no_dead_letter_or_still_needed_is_told_and_stays(
    cli: Cli, past: Lateshift, app: Lateshift, letters: list[JobId]
) -> None:
    [young] = bury(app, b"{}", task="late")
    [ready] = added(past.store, make_job())
    answer = cli("jobs", "discard", str(ready), str(young), str(letters[0]))
    assert (answer.code, answer.out) == (4, "1 job discarded.\n")
    assert f"job {ready} is ready and stays so." in answer.err
    assert f"job {young} was made less than five minutes ago" in answer.err
    by_id, by_filter = (
        cli("jobs", "discard", *which, "--show", "--json").document["kept"]
        for which in ([str(young)], ["--task", "late"])
    )
    assert by_id == by_filter
    assert by_id[0]["until"] is not None
    everything = cli("jobs", "discard", "--all", "--yes", "--json")
    assert set(everything.document["discarded"]) == set(named(letters[1:]))
    [kept] = everything.document["kept"]
    assert (kept["why"], kept["ids"]) == ("new", [str(young)])
    assert (see(past.store, ready).state, see(past.store, young).state) == (State.READY, State.DEAD)
    nothing = cli("jobs", "discard", "--task", "late", "--yes")
    assert (nothing.code, nothing.out) == (0, "0 jobs discarded.\n")
    assert "it can be discarded when they are over" in nothing.err


def test_a_filter_asks_first(
    cli: Cli, past: Lateshift, letters: list[JobId], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def confirm(said: str, *, err: bool) -> bool:
        asked.append(said)
        return False

    monkeypatch.setattr("click.confirm", confirm)
    assert cli("jobs", "discard", "--task", "pack").out == "Nothing was discarded.\n"
    assert cli("jobs", "discard", "--all", "--limit", "2").out == "Nothing was discarded.\n"
    assert asked == [
        "Delete 2 dead letters for good?",
        "Delete 2 dead letters (as many as --limit allows) for good?",
    ]
    assert left(past) == 3
    plan = cli("jobs", "discard", "--task", "pack", "--show", "--json").document
    assert (plan["would_discard"], set(plan["ids"]), plan["kept"]) == (2, set(named(letters[:2])), [])
    assert "2 jobs would be deleted for good" in cli("jobs", "discard", "--task", "pack", "--show").out
    like = past.dead_letters(task="pack").groups().largest_first[0].fingerprint
    assert cli("jobs", "discard", "--like", like, "--yes").out == "2 jobs discarded.\n"
    assert (
        cli("jobs", "discard", "--reason", "permanent", "--queue", "default", "--yes").out
        == "1 job discarded.\n"
    )
    assert cli("jobs", "discard", "--all", "--yes").err == "No dead letters.\n"


def test_nobody_who_answers_and_nothing_that_fits_are_errors(
    cli: Cli, past: Lateshift, letters: list[JobId]
) -> None:
    assert cli("jobs", "discard").code == 2
    assert cli("jobs", "discard", str(letters[0]), "--all").code == 2
    unknown = cli("jobs", "discard", "--task", "pakc", "--yes")
    assert unknown.code == 4
    assert "nothing was discarded. There are some with task pack" in unknown.err
    assert left(past) == 3


def test_code_discards_what_it_means(past: Lateshift, app: Lateshift, letters: list[JobId]) -> None:
    [young] = bury(app, b"{}", task="pack")
    pack = app.dead_letters(task="pack")
    plan = pack.plan_discard(limit=1)
    assert (plan.ids, plan.kept) == ([letters[1]], {young: Kept.NEW})
    done = pack.discard(by="ana", limit=1)
    assert (done.ids, done.kept) == ([letters[1]], {young: Kept.NEW})
    assert app.dead_letters().discard().ids == [letters[2], letters[0]]
    assert app.dead_letters().discard().ids == []
    assert [row.actor for row in app.store.audit.list(limit=10)] == ["the caller", "the caller", "ana"]


def test_many_go_in_several_transactions_and_so_many_are_looked_at(
    past: Lateshift, app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lateshift.dead_letters.discarding.DISCARD_MOST", 2)
    ids = bury(past, *[b"{}"] * 7)
    few = app.dead_letters()
    few.most = 3
    assert few.discard(limit=DISCARD_MOST).ids == ids[:3:-1]
    assert few.cut
    assert app.dead_letters().discard(limit=DISCARD_MOST).ids == ids[3::-1]
