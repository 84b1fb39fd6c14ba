"""What a request may cost. Every limit has a name here, its value in docs/api.md, and a test."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypeAlias

from msgspec import Meta

from lateshift.model.depth import JSON_DEPTH as JSON_DEPTH

BODY_LIMIT = 1024 * 1024  # bytes of a request's body
# Bytes of bodies of callers that are not known yet, held at once; more are answered 503.
UNKNOWN_BODIES = 32 * 1024 * 1024
UNKNOWN_OF_ADDRESS = (
    16 * 1024 * 1024
)  # of them those of one address; more are answered 429; not where a proxy is declared
KNOWN_BODIES = 128 * 1024 * 1024  # bytes of bodies of those who are known, likewise
BODIES_OF_TOKEN = 64 * 1024 * 1024  # of them those of one token and of its browsers; more are answered 429
SMALL_BODY = 64 * 1024  # bytes of each of all these bodies that are not counted
SIGN_IN_LIMIT = 16 * 1024  # bytes of the form that somebody signs in or out with
DISCARDED = 4 * 1024 * 1024  # bytes over it that are read and thrown away, so that the answer is heard
URL_LIMIT = 8 * 1024  # bytes of a path and its query
HEADERS_LIMIT = 16 * 1024  # bytes of all headers together
HEADERS_MOST = 100
HEAD_WITHIN = timedelta(seconds=10)  # from its first byte, or the connection is closed
# That the client takes none, or next to none, of an answer; then the connection is cut.
READ_WITHIN = timedelta(seconds=30)
READ_LEAST = 16 * 1024  # bytes that it takes in this time, unless that is all there is
LARGE_ANSWER = 64 * 1024  # bytes over which an answer is counted until its client has read it
# Bytes of large answers that are not read yet, held at once; more are answered 503.
UNREAD_ANSWERS = 128 * 1024 * 1024
UNREAD_OF_TOKEN = 64 * 1024 * 1024  # of them those of one token and of its browsers; more are answered 429
QUESTION_LIMIT = (
    64 * 1024
)  # characters of a form that a page repeats which asks first; of more it is not asked, and nothing is done
PROBLEM_LIMIT = (
    8_000  # characters of what a problem says, and of the field that it names; the rest is left out
)
HEAD_LIMIT = 64 * 1024  # bytes of a request's head, over which the connection is closed without a word
REQUESTS_AT_ONCE = 2_000  # connections and requests of one process, streams among them; more are answered 503
CONNECTIONS_OF_ADDRESS = 1_500  # of them those of one address; not where a proxy is declared
SPARE_CONNECTIONS = (
    100  # more than those, on which only probes are answered; the oldest gives way to the next
)
DEAR_AT_ONCE = 2  # requests of a process that look at a lot and are under way; the others wait for their turn
DEAR_OF_TOKEN = 16  # of them those of one token that are under way or wait; more are answered 429
DEADLINE = timedelta(seconds=30)  # until a request is answered one way or another
WAIT_MOST = 20  # seconds that `?wait=` may ask for
PAGE = 20
PAGE_MOST = 200  # of anything on one page
# Of what callers and strangers put into the entries of a page; its first is always there.
PAGE_BYTES = 4 * 1024 * 1024
READ_BYTES = 8 * 1024 * 1024  # of it that are read at once, if each entry has as much as it may
FILTER_LIMIT = 200  # characters of a name in a filter
RUNS_LOOKED_AT = 1_000  # runs of workflows among which a state is looked for, for one page
STEPS_JUDGED = 100_000  # of runs, for one request, to say whether a token that is for some queues may end them, or let them go on
JUDGED_ON_PAGE = (
    1_000  # of them, for the buttons of a page; those of larger runs are judged when they are pressed
)
RESUBMIT_MOST = 1_000  # dead letters that one request resubmits
GROUPS_MOST = 1_000
STREAMS_MOST = 1_000  # listeners of one process; more are answered 503
STREAMS_OF_TOKEN = 500  # of them one token's, and those of its browsers; more are answered 429
STREAM_TIME = timedelta(hours=1)  # that a stream is open; then its client asks again, and misses nothing
CHECK_EVERY = timedelta(seconds=5)  # that the token of a silent stream is looked at again
HEARTBEAT = timedelta(seconds=15)  # of silence, after which a stream says that it is still there
LAST_EVENT_LIMIT = 100  # characters of a Last-Event-ID
BACKFILL_MOST = 10_000  # ticks that one request fills
DEAD_MOST = 10_000  # newest dead letters that one request looks at
TOKEN_RATE = 5_000  # requests of one token in a second, over which they are answered 429
SIGN_INS_AT_ONCE = 20  # of one token and of its browsers; more are answered 429
SIGN_IN_EVERY = timedelta(minutes=1)  # one more
ADDRESS_RATE = 5_000  # requests of one address in a second, likewise
LOOK_LASTS = timedelta(milliseconds=250)  # after which a token is looked at again before anything is done
BURST_SECONDS = 2  # so many seconds' worth may come at once
FAILURES_OF_TOKEN = 10  # tokens of one id that were not good, from one address, until it has to wait
FAILURES_OF_ADDRESS = 100  # of any
BACKOFF_FIRST = timedelta(seconds=1)  # how long it has to wait then, twice as long each time
BACKOFF_MOST = timedelta(minutes=5)
FAILURES_FORGOTTEN = timedelta(minutes=15)  # without another
CALLERS_REMEMBERED = 10_000  # addresses and tokens that are counted at a time
METRICS_EVERY = timedelta(seconds=1)  # scrapes within it share one look at the store
SHOWN_OF_BULK = 20  # jobs that the preview of a bulk action shows
READY_WITHIN = timedelta(seconds=5)  # until a store that does not answer counts as away


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Those that may be made smaller."""

    body: int = BODY_LIMIT
    unknown_bodies: int = UNKNOWN_BODIES
    unknown_of_address: int = UNKNOWN_OF_ADDRESS
    known_bodies: int = KNOWN_BODIES
    bodies_of_token: int = BODIES_OF_TOKEN
    unread_answers: int = UNREAD_ANSWERS
    unread_of_token: int = UNREAD_OF_TOKEN
    deadline: timedelta = DEADLINE
    streams: int = STREAMS_MOST
    streams_of_token: int = STREAMS_OF_TOKEN
    stream: timedelta = STREAM_TIME
    check: timedelta = CHECK_EVERY
    dear: int = DEAR_AT_ONCE
    dear_of_token: int = DEAR_OF_TOKEN
    token_rate: float = TOKEN_RATE
    address_rate: float = ADDRESS_RATE


BOUNDS = Bounds()

# PostgreSQL keeps no NUL in text, and no name has one.
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=FILTER_LIMIT, pattern=r"^[^\x00]*$")]
RateText: TypeAlias = Annotated[
    str,
    Meta(
        max_length=FILTER_LIMIT,
        description="How fast they go: each is due at its time.",
        examples=["10/s", "300/min", "5000/h"],
    ),
]
PageSize: TypeAlias = Annotated[int, Meta(ge=1, le=PAGE_MOST)]
Cursor: TypeAlias = Annotated[str, Meta(max_length=1_000)]
