"""Log lines for programs: one JSON object a record, in ASCII, so that no message forges a second line or reaches a terminal."""

import json
import logging
from datetime import UTC, datetime

from lateshift.model.outcome import TRACEBACK_LIMIT, clip_middle
from lateshift.model.sealed import MASK
from lateshift.telemetry.keeping import ABOUT, MADE_BY, SEALED, is_hidden
from lateshift.telemetry.tracing import ids

FIELDS = (
    "time",
    "level",
    "logger",
    "message",
    "app",
    "version",
    "member",
    "job",
    "task",
    "queue",
    "attempt",
    "trace_id",
    "span_id",
    "traceback",
)

_process: dict[str, str | int] = {}


def identify(**facts: str) -> None:
    """Whose process this is: `app`, `version`, `member`. Said again when that changes; the last word counts."""
    _process.update(facts)


def message_of(record: logging.LogRecord) -> str:
    """Formatting runs code of the program. What that raises would be printed as it is, by the standard library."""
    try:
        return record.getMessage()
    except Exception as error:
        return f"[a message that cannot be formatted: {type(error).__name__} at {record.pathname}, line {record.lineno}]"


class JsonLines(logging.Formatter):
    """The fields are FIELDS, in that order; what is not known of a record is left out."""

    def format(self, record: logging.LogRecord) -> str:
        known = record.__dict__
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": MASK if is_hidden(record) else message_of(record),
            **_process,
            **(known.get(ABOUT) or known.get(MADE_BY) or ids()),
        }
        if record.exc_info and record.exc_info[0] is not None and SEALED not in known:
            fields["traceback"] = clip_middle(self.formatException(record.exc_info), TRACEBACK_LIMIT)
        return json.dumps(fields).replace(
            "\x7f", "\\u007f"
        )  # the one control character that JSON leaves alone
