"""Who resubmitted a job, or gave it other arguments, is told, also where what they gave is not."""

from datetime import UTC, datetime

import pytest

from lateshift.model.edit import Edit, line_of
from lateshift.model.job import AttemptRecord
from lateshift.model.sealed import MASK, hidden_record

AT = datetime(2026, 11, 18, tzinfo=UTC)
SEALED = b'"sealed:1:k1:payload:AAAA"'


def hidden(by: str, before: bytes, after: bytes) -> AttemptRecord:
    return hidden_record(line_of(Edit(before, after), by=by, attempt=1, fence=1, at=AT))


@pytest.mark.parametrize("by", ["token ann", "ann on host", "me, with other arguments", "a: b → c"])
def test_a_line_of_a_sensitive_queue_says_who_and_not_what(by: str) -> None:
    line = hidden(by, b'{"name":"secret, with other arguments"}', b'{"name":"canary"}')
    assert (line.message or "").startswith(f"by {by.partition(', with')[0]}, with other arguments")
    assert "secret" not in str(line)
    assert "canary" not in str(line)
    assert line.was == {"name": MASK}


def test_a_line_of_sealed_arguments_says_who() -> None:
    assert hidden("token ann", SEALED, SEALED).message == "by token ann, with other arguments"


def test_a_line_without_other_arguments_says_who() -> None:
    line = hidden_record(line_of(None, by="token ann", attempt=1, fence=1, at=AT))
    assert (line.message, line.was) == ("by token ann", None)


def test_what_an_attempt_said_is_hidden_whole() -> None:
    record = AttemptRecord(
        attempt=1, fence=1, at=AT, reason="failed", message="by me, with other arguments: secret"
    )
    assert hidden_record(record).message == MASK


def test_a_line_that_is_not_as_ours_is_hidden_whole() -> None:
    record = AttemptRecord(attempt=1, fence=1, at=AT, reason="resubmitted", message="secret")
    assert hidden_record(record).message == MASK
