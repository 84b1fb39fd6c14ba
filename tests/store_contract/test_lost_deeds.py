"""PostgreSQL: of every deed of an operator the answer to its commit is lost, others undo it, and the store tries again by itself."""

from concurrent.futures import Future, ThreadPoolExecutor
from os import dup
from socket import SHUT_RDWR, socket
from typing import Any

import psycopg
import pytest

from lateshift.store.postgres import PostgresStore
from lateshift.store.postgres.deeds import Lines
from tests.store_contract.deeds import DEEDS, Make, all_of, done_by_ana, each
from tests.store_contract.driving import query
from tests.store_contract.test_lost_answers import Injured, lose_next_answer, store
from tests.store_contract.test_schedules import hourly
from tests.store_contract.test_triggers import trigger

__all__ = ["lose_next_answer", "store"]  # fixtures


@each
def test_a_deed_whose_answer_is_lost_is_answered_as_if_it_had_come_told_once_and_not_done_again(
    store: PostgresStore, lose_next_answer: Injured, make: Make
) -> None:
    deed, left = make(store), []

    def meanwhile() -> None:
        deed.undo()
        left.append(all_of(store))

    lose_next_answer(meanwhile=meanwhile, skip=deed.looks)
    answer = deed.do()

    assert deed.gives in (None, answer)
    assert len(done_by_ana(store)) == deed.lines
    assert [all_of(store)] == left


def test_a_declaration_whose_answer_is_lost_says_what_it_has_changed(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    lose_next_answer()
    assert store.schedules.declare([hourly(store.clock.now())], app="shop").added == ["report"]
    lose_next_answer()
    assert store.triggers.declare([trigger()], app="shop").added == ["orders"]


SLOW_COMMITS = """CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
 PERFORM pg_advisory_xact_lock(42); RETURN NULL; END$$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON lateshift.audit DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.slow()"""
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@pytest.mark.parametrize("name", ["queues.pause", "audit.record"])
def test_a_server_that_is_still_at_its_commit_when_the_connection_is_lost_is_waited_for(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    deed, write = DEEDS[name][0](store), Lines.write
    used: list[Any] = []

    def seen(lines: Any, *given: Any) -> None:
        used.append(lines._connection)
        write(lines, *given)

    monkeypatch.setattr(Lines, "write", seen)
    with psycopg.connect(postgres_url, autocommit=True) as other, ThreadPoolExecutor(1) as thread:
        other.execute(SLOW_COMMITS)
        other.execute("SELECT pg_advisory_lock(42)")
        doing = thread.submit(deed.do)
        until_they_wait(store, doing, 1)
        with socket(fileno=dup(used[0].fileno())) as line:
            line.shutdown(SHUT_RDWR)  # the client hears no more; the server, which waits, does not know
        until_they_wait(store, doing, 2)
        other.execute("SELECT pg_advisory_unlock(42)")
        answer = doing.result(timeout=30)

    assert deed.gives in (None, answer)
    assert len(done_by_ana(store)) == deed.lines


def until_they_wait(store: PostgresStore, doing: "Future[Any]", count: int) -> None:
    while query(store, WAITING) != [(count,)]:
        assert not doing.done()


def test_who_takes_locks_by_the_numbers_of_lines_to_come_holds_up_no_deed(
    store: PostgresStore, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as stranger:
        stranger.execute(
            "SELECT pg_advisory_lock(hashtextextended('lateshift audit ' || n, 0)) FROM generate_series(1, 50) n"
        )
        stranger.execute("SELECT pg_advisory_lock(n) FROM generate_series(1, 50) n")
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(store.queues.pause, "mail", by="ana").result(timeout=10) is True
