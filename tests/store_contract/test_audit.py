"""The audit: what operators did, the newest first, page by page, at a cost that does not grow with it."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from lateshift.clock import ManualClock
from lateshift.errors import OptionInvalid
from lateshift.store import postgres, sqlite
from lateshift.store.access_contract import AUDIT_AT_ONCE, AUDIT_LOOKED_AT, AUDIT_TEXT_LIMIT, AuditRow
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import database as postgres_database
from lateshift.store.postgres.schema import STEPS as POSTGRES_STEPS
from lateshift.store.sqlite import database as sqlite_database
from lateshift.store.sqlite.schema import STEPS as SQLITE_STEPS
from lateshift.store.taking import AUDIT_KEPT, STARTS_KEPT
from tests.store_contract.driving import HOUR, Supervisor, added, make_job, query
from tests.store_contract.explaining import analyse, plans

BEFORE_NUMBERS = 6  # the schema in which lines had none


def lines(rows: list[AuditRow]) -> list[tuple[str, str, str]]:
    return [(row.action, row.subject, row.actor) for row in rows]


def test_what_was_recorded_is_listed_the_newest_first(store: Store, clock: ManualClock) -> None:
    assert store.audit.list(limit=10) == []
    store.audit.record("sign in", "dashboard", by="ann")
    clock.move(hours=1)
    store.audit.record("sign out", "dashboard", by="bob")
    newest, oldest = store.audit.list(limit=10)
    assert lines([newest, oldest]) == [("sign out", "dashboard", "bob"), ("sign in", "dashboard", "ann")]
    assert newest.number > oldest.number
    assert timedelta(0) <= newest.at - oldest.at - HOUR < HOUR


def test_what_the_other_verbs_did_is_listed_too(store: Store) -> None:
    [id] = added(store, make_job())
    store.queues.pause("mail", by="ann")
    store.queues.resume("mail", by="bob")
    store.jobs.cancel([id], by="eve")
    assert lines(store.audit.list(limit=10)) == [
        ("cancel", str(id), "eve"),
        ("resume", "mail", "bob"),
        ("pause", "mail", "ann"),
    ]


def test_pages_leave_nothing_out_though_many_lines_are_of_one_instant(store: Store) -> None:
    ids = added(store, *(make_job() for _ in range(25)))
    store.jobs.cancel(ids, by="ann")
    pages: list[list[AuditRow]] = []
    before: int | None = None
    while page := store.audit.list(before=before, limit=10):
        pages.append(page)
        before = page[-1].number
    assert [len(page) for page in pages] == [10, 10, 5]
    assert sorted(row.subject for page in pages for row in page) == sorted(map(str, ids))
    numbers = [row.number for page in pages for row in page]
    assert numbers == sorted(numbers, reverse=True)


def test_what_comes_meanwhile_does_not_move_the_next_page(store: Store) -> None:
    for number in range(4):
        store.audit.record("do", f"s{number}", by="ann")
    first = store.audit.list(limit=2)
    store.audit.record("do", "s4", by="ann")
    second = store.audit.list(before=first[-1].number, limit=2)
    assert [row.subject for row in first + second] == ["s3", "s2", "s1", "s0"]


@pytest.fixture
def filled(store: Store) -> Store:
    for action in ("pause", "resume"):
        for subject in ("mail", "images"):
            for actor in ("ann", "bob"):
                store.audit.record(action, subject, by=actor)
    return store


@pytest.mark.parametrize("subject", [None, "mail", "nothing"])
@pytest.mark.parametrize("actor", [None, "bob", "nobody"])
@pytest.mark.parametrize("action", [None, "pause", "never"])
def test_filters_go_together(
    filled: Store, subject: str | None, actor: str | None, action: str | None
) -> None:
    every = filled.audit.list(limit=100)
    assert len(every) == 8
    wanted = [
        row
        for row in every
        if subject in (None, row.subject) and actor in (None, row.actor) and action in (None, row.action)
    ]
    given: dict[str, Any] = {"subject": subject, "actor": actor, "action": action}
    assert filled.audit.list(limit=100, **given) == wanted
    assert filled.audit.list(limit=1, **given) == wanted[:1]
    assert filled.audit.list(before=every[3].number, limit=100, **given) == [
        row for row in wanted if row.number < every[3].number
    ]


def test_texts_that_differ_at_their_end_are_told_apart_however_long(store: Store) -> None:
    long = "x" * 5_000
    store.queues.pause("mail", by=f"{long}1")  # which the caller may choose
    store.queues.pause("images", by=f"{long}2")
    [found] = store.audit.list(limit=10, actor=f"{long}2")
    assert found.actor.endswith("2")
    assert store.audit.list(limit=10, actor=long) == []


def test_what_is_recorded_is_cut_and_kept_as_every_store_can(store: Store) -> None:
    store.audit.record("a" * 1_000, "nul \0 and \udcff", by="b" * AUDIT_TEXT_LIMIT)
    [row] = store.audit.list(limit=10)
    assert (len(row.action), len(row.actor)) == (AUDIT_TEXT_LIMIT, AUDIT_TEXT_LIMIT)
    assert row.subject == "nul \\x00 and \\udcff"


@pytest.mark.parametrize("limit", [0, -1, AUDIT_AT_ONCE + 1, True, None])
def test_a_page_is_bounded(store: Store, limit: Any) -> None:
    with pytest.raises(OptionInvalid, match="from 1 to 1,000"):
        store.audit.list(limit=limit)


def test_lines_are_kept_for_a_year(store: Store, supervisor: Supervisor, clock: ManualClock) -> None:
    store.audit.record("first", "a", by="ann")
    clock.move(days=1)
    store.audit.record("second", "a", by="ann")
    clock.move(seconds=AUDIT_KEPT.total_seconds() - 3600)
    supervisor.purge()
    [left] = store.audit.list(limit=10)
    assert left.action == "second"
    store.audit.record("third", "a", by="ann")
    newest = store.audit.list(limit=10)[0]
    assert newest.action == "third"
    assert newest.number > left.number


def fill(store: Store, count: int) -> None:
    if store.url.startswith("postgresql"):
        query(
            store,
            "INSERT INTO {audit} (at, action, subject, actor) SELECT now() + i * interval '1 second', 'a' || (i %% 3),"
            " 's' || (i %% 1000), 'u' || (i %% 2) FROM generate_series(1, {}) i",
            count,
        )
    else:
        query(
            store,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
            " INSERT INTO {audit} (at, action, subject, actor) SELECT i, 'a' || (i % 3), 's' || (i % 1000), 'u' || (i % 2) FROM n",
            count,
        )


def test_of_several_filters_the_others_are_looked_for_among_so_many_lines(store: Store) -> None:
    store.audit.record("rare", "a", by="u0")
    fill(
        store, 2 * AUDIT_LOOKED_AT - 2
    )  # half of them of u0, so that the rare one is the last that is looked at
    [found] = store.audit.list(limit=10, actor="u0", action="rare")
    assert found.subject == "a"
    store.audit.record("another", "a", by="u0")
    assert store.audit.list(limit=10, actor="u0", action="rare") == []
    assert store.audit.list(limit=10, action="rare") == [found]
    newest = store.audit.list(limit=1, actor="u0")[0].number
    assert store.audit.list(before=newest, limit=10, actor="u0", action="rare") == [found]


@pytest.mark.parametrize("analysed", [False, True])
def test_no_page_reads_all_lines(store: Store, analysed: bool) -> None:
    fill(store, 5_000)
    if analysed:
        analyse(store)
    given = {"before": 4_000, "limit": 20, "subject": "s1", "actor": "u1", "action": "a1", "starts": False}
    if store.url.startswith("postgresql"):
        audit = postgres.audit
        wanted = [
            (audit.LIST, "audit_pkey"),
            (audit.LIST_DEEDS, "audit_deeds"),
            (audit.LIST_OF_SUBJECT, "audit_subject"),
            (audit.LIST_OF_ACTOR, "audit_actor"),
            (audit.LIST_OF_ACTION, "audit_action"),
        ]
        assert all("audit_pkey" in found for found in plans(store, postgres.deeds.FIND, (4_000,)))
        moment = timedelta(0)
        for looking, told in ((postgres.deeds.WRITE_STARTS, (moment, ["s1"], ["ann"])),):
            for found in plans(store, looking, told):
                assert re.search("on audit_subject|using audit_subject", found), found
        purging = {"skew": moment, "audit": AUDIT_KEPT, "starts": STARTS_KEPT, "limit": 10}
        for found in plans(store, postgres.upkeep.PURGE_AUDIT, purging):
            assert re.search("audit_at", found), found
            assert re.search("audit_action", found), found
            assert not re.search("Seq Scan|Sort", found), found
    else:
        wanted = [
            (sqlite.audit.LIST, "PRIMARY KEY (rowid<?)"),
            (sqlite.audit.LIST_DEEDS, "audit_deeds"),
            (sqlite.deeds.WRITE_STARTS, "audit_subject (subject=?)"),
            (sqlite.upkeep.PURGE_STARTS, "audit_action (action=?)"),
            (sqlite.audit.LIST_OF_SUBJECT, "audit_subject (subject=? AND number<?)"),
            (sqlite.audit.LIST_OF_ACTOR, "audit_actor (actor=? AND number<?)"),
            (sqlite.audit.LIST_OF_ACTION, "audit_action (action=? AND number<?)"),
        ]
    for sql, index in wanted:
        for found in plans(store, sql, given):
            assert index in found, f"{sql}\n{found}"
            assert not re.search("Seq Scan|Sort", found), (
                found
            )  # an old SQLite sorts the lines it looks at, which are bounded


@pytest.fixture(params=["sqlite", "postgres"])
def old_store(
    request: pytest.FixtureRequest, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A store of the schema before lines had numbers."""
    for module, steps in ((sqlite_database, SQLITE_STEPS), (postgres_database, POSTGRES_STEPS)):
        monkeypatch.setattr(module, "STEPS", steps[:BEFORE_NUMBERS])
        monkeypatch.setattr(module, "VERSION", BEFORE_NUMBERS)
    name = "sqlite_url" if request.param == "sqlite" else "empty_postgres_url"
    store = open_store(request.getfixturevalue(name), clock)
    store.ready()
    monkeypatch.undo()
    yield store
    store.close()


def test_lines_from_before_they_had_numbers_are_numbered_by_their_time(
    old_store: Store, clock: ManualClock
) -> None:
    for name, days in (("later", 2), ("sooner", -1), ("latest", 2)):
        clock.move(days=days)
        at = clock.now() if old_store.url.startswith("postgresql") else clock.microseconds()
        query(
            old_store,
            "INSERT INTO {audit} (at, action, subject, actor) VALUES ({}, 'pause', {}, 'ann')",
            at,
            name,
        )
    old_store.migrate()
    old_store.audit.record("new", "a", by="ann")
    assert [row.subject for row in old_store.audit.list(limit=10)] == ["a", "latest", "later", "sooner"]
