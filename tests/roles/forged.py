"""Rows of `job` as somebody with a submitter's password may try to add them."""

from typing import Any

from lateshift.model.placing import NAME_LIMIT, SEQUENCES
from lateshift.store.postgres.judging import STORED_PAYLOAD
from tests.forged_routes import FORGED_ROUTES

PLAIN: dict[str, Any] = {
    "id": "gen_random_uuid()", "queue": "'q'", "lane": "0", "state": "1", "priority": "0", "attempts": "1", "due_at": "now()",
    "created_at": "now()", "task": "'t'", "payload": "'{}'",
}  # fmt: skip
GUARDED = PLAIN | {"lane": "4", "tenant": "''", "holds": "0"}
SESSION = GUARDED | {"session": "'mine'"}
NUMBERED = SESSION | {"sequence": "7"}
LONG = f"repeat('x', {NAME_LIMIT + 1})"

# By the column that is wrong: of a row that is otherwise one of the above, with what it is changed to.
FORGED: dict[str, dict[str, tuple[dict[str, Any], str]]] = {
    "task": {
        "a delivery to a webhook": (PLAIN, "'lateshift.reply_webhook.hook'"),
        "a delivery to a broker": (PLAIN, "'lateshift.reply_broker.rabbit'"),
        "an alert": (PLAIN, "'lateshift.alert_webhook'"),
        "an alert by a name of the program's": (PLAIN, "'ops-alerts'"),
        "without a name": (PLAIN, "''"),
        "with a name too long for an index": (PLAIN, LONG),
        "with a name of two lines": (PLAIN, "E'a\\nb'"),
    },
    "queue": {
        "among deliveries": (PLAIN, "'replies.hook'"),
        "in no queue": (PLAIN, "''"),
        "in a queue that cannot be": (PLAIN, "'a queue'"),
        "in a queue of two lines": (PLAIN, "E'q\\n'"),
        "in a queue too long": (PLAIN, "repeat('q', 101)"),
    },
    "batch": {"in a batch": (PLAIN, "gen_random_uuid()"), "guarded in a batch": (GUARDED, "gen_random_uuid()")},
    "lane": {
        "in a lane that is none": (PLAIN, "99"),
        "in a lane below all": (PLAIN, "-1"),
        "in a lane to come": (PLAIN, "7"),
        "as a suspect": (GUARDED, "3"),
        "guarded, without a guard": (PLAIN, "4"),
        "with a guard, unguarded": (GUARDED, "0"),
    },
    "state": {
        "already running": (PLAIN, "2"),
        "as if settled": (PLAIN, "4"),
        "in no state": (PLAIN, "7"),
        "blocked by nothing": (PLAIN, "3"),
    },
    "blocked_by": {
        "as if a breaker held it": (SESSION | {"state": "3"}, "'breaker:b'"),
        "behind another's session": (SESSION | {"state": "3"}, "'session:theirs'"),
        "ready and blocked": (SESSION, "'session:mine'"),
    },
    "priority": {"before all others": (PLAIN, "101"), "behind all others": (PLAIN, "-101")},
    "attempts": {
        "without an attempt": (PLAIN, "0"),
        "with attempts below none": (PLAIN, "-1"),
        "with attempts for ever": (PLAIN, "1000001"),
    },
    "due_at": {
        "at a time that no program can read": (PLAIN, "'infinity'"),
        "due before all time": (PLAIN | {"state": "0"}, "'-infinity'"),
        "due after the last date": (PLAIN | {"state": "0"}, "'294276-01-01'"),
    },
    "time_limit": {
        "without time": (PLAIN, "interval '0'"),
        "with time that runs over": (PLAIN, "interval '200000 years'"),
        "with time below none": (PLAIN, "interval '-1 second'"),
        "with months against days": (PLAIN, "interval '4000000 months -119999999 days'"),
        "with days against hours": (PLAIN, "interval '100000 days -2399999 hours'"),
    },
    "exclusive": {
        "as another's singleton": (GUARDED, "'task:other'"),
        "as a breaker": (GUARDED, "'breaker:b'"),
        "as a singleton without a guard": (PLAIN, "'task:t'"),
    },
    "payload": {"with arguments too long": (PLAIN, f"decode(repeat('00', {STORED_PAYLOAD + 1}), 'hex')")},
    "session": {
        "in no session": (SESSION, "''"),
        "in a session too long for an index": (SESSION | {"state": "0"}, LONG),
        "in a session without a guard": (PLAIN, "'s'"),
    },
    "sequence": {
        "with no number": (SESSION, "0"),
        "with the last of all numbers": (SESSION, str(2**63 - 1)),
        "with the first number too high": (SESSION, str(SEQUENCES[-1] + 1)),
        "with a number of no session": (GUARDED, "1"),
    },
    "gap_after": {
        "waiting for nothing": (NUMBERED, "interval '0'"),
        "waiting without an end": (NUMBERED, "interval '200000 years'"),
        "waiting by months": (NUMBERED, "interval '1 month'"),
        "waiting for no number": (SESSION, "interval '1 hour'"),
    },
    "holds": {
        "holding what there is not": (NUMBERED, "4"),
        "holding less than nothing": (NUMBERED, "-1"),
        "holding at a gap of no numbers": (SESSION, "2"),
        "holding no session": (GUARDED, "1"),
        "not saying what it holds": (GUARDED, "NULL"),
    },
    "tenant": {"of a tenant too long for an index": (GUARDED | {"state": "0"}, LONG), "of a tenant unguarded": (PLAIN, "''")},
    "limit_key": {
        "of a limit too long for an index": (GUARDED, LONG),
        "of no limit": (GUARDED, "''"),
        "of a limit unguarded": (PLAIN, "'vendor:a'"),
    },
    "trace": {"traced without an end": (PLAIN, "repeat('[', 3000)")},
    "reply": {"telling others unguarded": (PLAIN, "'[{\"target\":{\"to\":\"channel:c\"},\"kinds\":1}]'")}
    | {f"telling {what}": (GUARDED, f"$forged${text}$forged$") for what, text in FORGED_ROUTES.items()},
}  # fmt: skip
# What is not judged, for it is not the submitter's: it is given to the row, whatever that says.
GIVEN = {"created_at", "turn"}
# Nor this, for any will do. One that has been settled is left out.
ANY = {"id"}

ROWS = {what: row | {column: value} for column, each in FORGED.items() for what, (row, value) in each.items()}


def adding(row: dict[str, str], changes: dict[str, str] | None = None) -> bytes:
    columns = row | (changes or {})
    return f"INSERT INTO lateshift.job ({', '.join(columns)}) VALUES ({', '.join(columns.values())})".encode()
