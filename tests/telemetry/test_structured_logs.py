"""Log lines for programs: one JSON object a record, whatever a message holds."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import pytest

from lateshift.config import JOB_LOGS, LOG_FORMATS, Settings, load
from lateshift.errors import OptionInvalid
from lateshift.model.outcome import TRACEBACK_LIMIT
from lateshift.runtime.log import set_up
from lateshift.telemetry import keeping, structured
from lateshift.telemetry.context import running
from lateshift.telemetry.structured import FIELDS, JsonLines, identify
from tests.telemetry.test_attempt_log import LEASE


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a logger writes that nobody else hears."""
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    factory, process = logging.getLogRecordFactory(), dict(structured._process)
    structured._process.clear()
    yield output
    log.removeHandler(handler)
    logging.setLogRecordFactory(factory)
    structured._process.clear()
    structured._process.update(process)


log = logging.Logger("shop")


def test_a_line_says_when_how_bad_who_and_what(written: io.StringIO) -> None:
    log.warning("%s of %d", "one", 2)

    fields = json.loads(written.getvalue())
    assert list(fields) == ["time", "level", "logger", "message"]
    assert (fields["level"], fields["logger"], fields["message"]) == ("WARNING", "shop", "one of 2")
    assert fields["time"].endswith("+00:00")


@pytest.mark.parametrize(
    "message",
    [
        "two\nlines",
        "\x1b[31mred\x7f\x9b31m",
        'quotes " and \\ and {"job": "forged"}',
        "\u2028separators\u2029",
        "no UTF-8 \udcff",
        "%s %d 100 % {nothing} $nothing",
        "ünïcödé 🐈",
    ],
)
def test_whatever_a_message_holds_is_one_line_of_ascii(written: io.StringIO, message: str) -> None:
    log.error(message)

    text = written.getvalue()
    assert text.count("\n") == 1
    assert all(" " <= character <= "~" for character in text.rstrip("\n"))
    assert json.loads(text)["message"] == message


def test_what_an_attempt_logs_names_its_job_and_its_process(written: io.StringIO) -> None:
    keeping.keep_from("off")
    identify(app="shop", version="7", member="m1")
    attempt: Any = SimpleNamespace(lease=LEASE, log=None)

    def body() -> None:
        running.set(attempt)
        log.info("packing")

    copy_context().run(body)

    fields = json.loads(written.getvalue())
    assert fields.items() >= {
        "app": "shop", "version": "7", "member": "m1", "job": str(LEASE.id), "task": "thumbnail", "queue": "images",
        "attempt": 2,
    }.items()  # fmt: skip
    assert list(fields) == [name for name in FIELDS if name in fields]


def test_what_a_worker_says_of_a_job_names_it_too_also_inside_of_another_attempt(
    written: io.StringIO,
) -> None:
    keeping.keep_from("off")
    log.error("dead", extra=keeping.about(LEASE))

    assert json.loads(written.getvalue())["job"] == str(LEASE.id)


def test_a_traceback_is_a_field_and_bounded(written: io.StringIO) -> None:
    try:
        raise ValueError("x" * 100_000)
    except ValueError:
        log.exception("failed")

    fields = json.loads(written.getvalue())
    assert fields["message"] == "failed"
    assert fields["traceback"].startswith("Traceback")
    assert len(fields["traceback"]) <= TRACEBACK_LIMIT


def test_a_wrong_format_or_level_is_refused_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATESHIFT_LOG_FORMAT", "xml")
    with pytest.raises(OptionInvalid, match="log_format cannot be 'xml': it is one of plain, json"):
        load()
    monkeypatch.setenv("LATESHIFT_LOG_FORMAT", "json")
    monkeypatch.setenv("LATESHIFT_JOB_LOG", "loud")
    with pytest.raises(OptionInvalid, match="job_log cannot be 'loud': it is one of DEBUG"):
        load()
    for format in LOG_FORMATS:
        for level in JOB_LOGS:
            assert Settings(log_format=format, job_log=level).log_format == format


@pytest.mark.parametrize(
    ("settings", "bodies", "level"),
    [
        (Settings(), False, "WARNING"),
        (Settings(), True, "INFO"),
        (Settings(job_log="off"), True, "WARNING"),
        (Settings(job_log="ERROR"), True, "WARNING"),
        (Settings(job_log="DEBUG"), True, "DEBUG"),
    ],
)
def test_loggers_let_through_what_is_written_and_where_bodies_run_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, bodies: bool, level: str
) -> None:
    root = logging.RootLogger(logging.NOTSET)
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    set_up("WARNING", settings, bodies=bodies)

    assert logging.getLevelName(root.level) == level
    assert [logging.getLevelName(handler.level) for handler in root.handlers] == ["WARNING"]


def test_the_plain_format_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    root, output = logging.RootLogger(logging.NOTSET), io.StringIO()
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(sys, "stderr", output)
    set_up("INFO")

    root.info("two\nlines")

    assert output.getvalue().startswith("INFO 2")
    assert output.getvalue().endswith(" root: two\\nlines\n")
