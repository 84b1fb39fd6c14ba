"""Log lines for people: whatever a job logs, no line of it passes for another record, and no terminal obeys it."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from lateshift.config import Settings
from lateshift.model.escaping import OBEYED
from lateshift.runtime.log import BELOW, set_up
from lateshift.telemetry.structured import JsonLines

FORGED = "ERROR 2026-03-01T12:00:00+0000 lateshift: token root was revoked by mallory"
HOSTILE = f"x\n{FORGED} \x1b[31mRED\r\n{FORGED}\u2028{FORGED}\x85{FORGED} \u202egnp.exe\u2066 \x9b31m \x7f"


log = logging.Logger("shop")


@pytest.fixture(params=["plain", "json"])
def written(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What Lateshift's commands write, in each format."""
    root, output = logging.RootLogger(logging.NOTSET), io.StringIO()
    with monkeypatch.context() as instead:
        instead.setattr(logging, "root", root)
        instead.setattr(sys, "stderr", output)
        set_up("INFO", Settings(log_format=request.param))
    (handler,) = root.handlers
    log.addHandler(handler)
    yield output
    log.removeHandler(handler)


def own(text: str) -> list[str]:
    """The lines that stand for a record: of the others, each says that it is below one. As any program may cut them."""
    return [line for line in text.splitlines() if not line.startswith(BELOW)]


def raised() -> tuple[type[BaseException], BaseException, object]:
    try:
        try:
            raise KeyError(HOSTILE)
        except KeyError as cause:
            error = ValueError(HOSTILE)
            error.add_note(HOSTILE)
            raise error from cause
    except ValueError as error:
        return type(error), error, error.__traceback__


def test_an_error_that_is_logged_forges_no_line_and_reaches_no_terminal(written: io.StringIO) -> None:
    log.error("it failed", exc_info=raised())  # type: ignore[arg-type]

    assert_harmless(written.getvalue())
    assert "ValueError" in written.getvalue()


def test_nor_does_the_source_code_in_a_stack(written: io.StringIO) -> None:
    record = logging.makeLogRecord({"levelno": 40, "msg": "here", "name": "shop", "levelname": "INFO", "stack_info": f"Stack\n{HOSTILE}"})  # fmt: skip
    log.handle(record)

    assert_harmless(written.getvalue())


def test_nor_a_traceback_that_another_handler_has_written_before(written: io.StringIO) -> None:
    record = logging.makeLogRecord({"levelno": 40, "msg": "failed", "name": "shop", "levelname": "ERROR", "exc_info": raised()})  # fmt: skip
    logging.Formatter().format(record)
    assert FORGED in (record.exc_text or "").splitlines()
    log.handle(record)
    record.exc_info = None  # as of one that came from another process
    log.handle(record)

    assert_harmless(written.getvalue(), records=2)


def test_nor_the_name_of_a_logger_nor_of_a_level(written: io.StringIO) -> None:
    log.handle(logging.makeLogRecord({"levelno": 40, "msg": "here", "name": HOSTILE, "levelname": HOSTILE}))

    assert_harmless(written.getvalue())


class Odd:
    def __str__(self) -> str:
        raise ValueError(HOSTILE)


@pytest.mark.parametrize("given", [("%d", HOSTILE), ("%s", Odd()), (Odd(),)], ids=["kind", "argument", "message"])  # fmt: skip
def test_nor_a_message_that_cannot_be_formatted_which_says_where_it_is_from(
    written: io.StringIO, given: tuple[object, ...]
) -> None:
    log.warning(*given)

    assert_harmless(written.getvalue())
    assert "a message that cannot be formatted: " in written.getvalue()
    assert "test_plain_logs.py" in written.getvalue()


@pytest.mark.parametrize("written", ["plain"], indirect=True)
def test_the_traceback_is_all_there_to_read(written: io.StringIO) -> None:
    try:
        raise ValueError("first\nsecond\ttabbed")
    except ValueError:
        log.exception("it failed", stack_info=True)

    first, *rest = written.getvalue().splitlines()
    assert first.endswith(" shop: it failed")
    assert all(line.startswith(BELOW) for line in rest)
    assert rest[0] == f"{BELOW}Traceback (most recent call last):"
    assert f"{BELOW}ValueError: first" in rest
    assert f"{BELOW}second\\x09tabbed" in rest
    assert f"{BELOW}Stack (most recent call last):" in rest


def assert_harmless(text: str, records: int = 1) -> None:
    lines = own(text)
    assert len(lines) == records, lines
    assert not [line for line in lines if line.startswith(FORGED[:12])]
    assert not {ord(letter) for letter in text} & (set(OBEYED) - {10})


def test_json_keeps_what_was_said_within_its_fields() -> None:
    record = logging.makeLogRecord({"levelno": 40, "msg": "failed", "name": "shop", "levelname": "ERROR", "exc_info": raised()})  # fmt: skip
    line = JsonLines().format(record)

    assert line.isascii()
    assert "\n" not in line
    assert FORGED in json.loads(line)["traceback"]
