"""The log of an attempt while it runs: bounded, and never a reason to fail a job."""

import logging
import threading
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lateshift.clock import ManualClock
from lateshift.model.attempt_log import (
    LOG_BYTES,
    LOG_LINE_LIMIT,
    LOG_LINES,
    LOGGER_LIMIT,
    LogLine,
    read,
    write,
)
from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Lease
from lateshift.telemetry import keeping
from lateshift.telemetry.attempt_log import Log
from lateshift.telemetry.context import running
from lateshift.worker.control import LIVE_LOG_EVERY, LIVE_LOGS_AT_ONCE, Control
from lateshift.worker.settler import LOGS_AT_ONCE, Settler

AT = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = Lease(
    id=new_job_id(), fence=3, task="thumbnail", queue="images", lane=Lane.THREAD, attempt=2, attempts=5, payload=b"[]",
    time_limit=timedelta(hours=1),
)  # fmt: skip

log = logging.getLogger("shop.images")


def line(message: str) -> LogLine:
    return LogLine(AT, "INFO", "shop", message)


@pytest.fixture(autouse=True)
def restored() -> Any:
    """Loggers let INFO through, as in a worker; everything is as it was, afterwards."""
    factory, level = logging.getLogRecordFactory(), keeping._level
    log.setLevel("INFO")
    yield
    log.setLevel(logging.NOTSET)
    logging.setLogRecordFactory(factory)
    keeping._level = level


def in_attempt(work: Any) -> Log | None:
    """What an attempt has logged that runs this."""
    attempt: Any = SimpleNamespace(lease=LEASE, log=None)

    def body() -> None:
        running.set(attempt)
        work()

    copy_context().run(body)
    return attempt.log  # type: ignore[no-any-return]


def messages(kept: Log | None) -> list[str]:
    assert kept is not None
    return [it.message for it in kept.close(LEASE).lines]


def test_the_newest_lines_win_and_what_was_dropped_is_counted() -> None:
    kept = Log()
    for number in range(LOG_LINES + 5):
        kept.add(line(str(number)))

    told = kept.close(LEASE)

    assert (len(told.lines), told.dropped) == (LOG_LINES, 5)
    assert (told.lines[0].message, told.lines[-1].message) == ("5", str(LOG_LINES + 4))
    assert (told.attempt, told.fence) == (2, 3)


def test_the_bytes_of_an_attempt_are_bounded_whatever_its_lines() -> None:
    kept = Log()
    for _ in range(100):
        kept.add(line("ü" * LOG_LINE_LIMIT))

    told = kept.close(LEASE)

    size = sum(len(it.message.encode()) for it in told.lines)
    assert LOG_BYTES - 2 * LOG_LINE_LIMIT < size <= LOG_BYTES
    assert told.dropped == 100 - len(told.lines)


def test_an_attempt_that_has_ended_takes_no_more() -> None:
    kept = Log()
    kept.add(line("in time"))
    kept.close(LEASE)

    kept.add(line("late"))

    assert kept.close(LEASE).logged == 1


def test_what_is_taken_is_taken_once_with_what_was_dropped_of_it() -> None:
    kept = Log()
    for number in range(LOG_LINES + 2):
        kept.add(line(str(number)))

    first, dropped = kept.take()
    kept.add(line("more"))

    assert (len(first), dropped) == (LOG_LINES, 2)
    assert kept.take() == ([line("more")], 0)
    assert kept.take() == ([], 0)


def test_every_logger_is_kept_from_the_level_up_whatever_its_handlers() -> None:
    keeping.keep_from("INFO")
    own = logging.getLogger("shop.own")
    own.propagate, own.disabled = False, False
    own.setLevel("DEBUG")

    def work() -> None:
        log.info("made %d of %s", 1, "cats")
        own.warning("closed")
        own.debug("too small")

    assert messages(in_attempt(work)) == ["made 1 of cats", "closed"]


def test_an_attempt_that_logs_nothing_has_no_log() -> None:
    keeping.keep_from("INFO")

    assert in_attempt(lambda: None) is None


def test_nothing_is_kept_when_it_is_off() -> None:
    keeping.keep_from("off")

    assert in_attempt(lambda: log.critical("anything")) is None


def test_nothing_is_kept_of_what_is_logged_outside_of_attempts() -> None:
    keeping.keep_from("INFO")

    log.warning("nobody's")

    assert in_attempt(lambda: None) is None


def test_a_record_is_kept_once_although_others_have_wrapped_the_factory() -> None:
    keeping.keep_from("INFO")
    ours = logging.getLogRecordFactory()

    def another(*args: Any, **kwargs: Any) -> logging.LogRecord:
        return ours(*args, **kwargs)

    logging.setLogRecordFactory(another)
    keeping.keep_from("INFO")

    assert messages(in_attempt(lambda: log.info("once"))) == ["once"]


def test_a_record_made_anew_from_another_is_not_kept_twice() -> None:
    keeping.keep_from("INFO")

    def work() -> None:
        record = logging.makeLogRecord({"name": "shop", "msg": "copied"})
        assert record.msg == "copied"

    assert in_attempt(work) is None


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("message", "args", "kept"),
    [
        ("100 % of %s", ("it",), "[a message that cannot be formatted: "),
        ("%s", (Unprintable(),), "[a message that cannot be formatted: RuntimeError]"),
        ("a file \udcff", (), "a file \\udcff"),
        ("%s", (), "%s"),
        ("x" * (LOG_LINE_LIMIT * 3), (), "x"),
    ],
    ids=["a wrong format", "an argument that raises", "no UTF-8", "a percent sign", "a long one"],
)
def test_a_bad_message_fails_no_job(message: str, args: tuple[Any, ...], kept: str) -> None:
    keeping.keep_from("INFO")
    nobody = logging.Logger("shop.nobody")  # handlers of others would fail, which is not what is tested
    nobody.addHandler(logging.NullHandler())

    [said] = messages(in_attempt(lambda: nobody.warning(message, *args)))

    assert said.startswith(kept)
    assert len(said) <= LOG_LINE_LIMIT
    assert read(write([line(said)])) == [line(said)]


def test_names_are_bounded() -> None:
    keeping.keep_from("INFO")
    kept = in_attempt(lambda: logging.getLogger("n" * 5000).warning("long"))

    assert kept is not None
    assert len(kept.close(LEASE).lines[0].logger) == LOGGER_LIMIT


def test_a_traceback_stands_below_its_message() -> None:
    keeping.keep_from("INFO")

    def work() -> None:
        try:
            raise ValueError("no such cat")
        except ValueError:
            log.exception("failed")

    [said] = messages(in_attempt(work))

    assert said.startswith("failed\nTraceback")
    assert said.endswith("ValueError: no such cat")


def test_threads_that_log_at_once_lose_nothing() -> None:
    keeping.keep_from("INFO")

    def work() -> None:
        def hundred() -> None:
            for _ in range(100):
                log.info("x")

        threads = [threading.Thread(target=copy_context().run, args=(hundred,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert messages(in_attempt(work)) == ["x"] * 800


def test_so_many_logs_go_out_in_one_exchange_and_the_rest_in_the_next() -> None:
    woken: list[bool] = []
    settler = Settler(lambda: woken.append(True))
    for _ in range(LOGS_AT_ONCE + 3):
        settler.put_log(Log().close(LEASE))

    first = settler.take_logs()
    assert (len(first), len(settler), woken[:1]) == (LOGS_AT_ONCE, 3, [True])
    settler.put_back([], first)  # the store did not answer
    assert len(settler) == LOGS_AT_ONCE + 3


@pytest.mark.anyio
async def test_so_many_logs_of_running_attempts_are_written_in_one_look() -> None:
    kept: list[int] = []
    store: Any = SimpleNamespace(logs=SimpleNamespace(keep=lambda logs: kept.append(len(logs))))
    held: list[Any] = [
        SimpleNamespace(lease=LEASE, log=Log(), seal=None) for _ in range(LIVE_LOGS_AT_ONCE + 3)
    ]
    for attempt in held:
        attempt.log.add(line("begun"))
    clock = ManualClock()
    clock.move(seconds=LIVE_LOG_EVERY)
    looking = Control(SimpleNamespace(), store, clock)  # type: ignore[arg-type]

    for _ in range(3):
        await looking._keep_logs(held)
    held[0].log.add(line("on"))
    await looking._keep_logs(held)  # not yet again
    clock.move(seconds=LIVE_LOG_EVERY)
    await looking._keep_logs(held)

    assert kept == [LIVE_LOGS_AT_ONCE, 3, 1]
