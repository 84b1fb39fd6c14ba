"""`lateshift triggers`, as an operator uses it, on both stores."""

from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from uuid import uuid4

import pytest

from lateshift.cli import exits
from lateshift.cli.main import run
from lateshift.model.ids import new_job_id, new_member_id
from lateshift.model.triggering.trigger import Arrival, Refused
from lateshift.runtime.leadership import TTL
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.worker.program import find_app
from tests.store_contract.driving import make_job, query
from tests.walks.commands import Cli

PROGRAM = """
from lateshift import Lateshift, Message

app = Lateshift("shop")

@app.on_message("amqp://guest:secret@host//", "orders")
@app.task
def place(order: dict[str, int]) -> None: ...

@app.on("order.*")
def tell(order: dict[str, int]) -> None: ...
"""


def written(text: str) -> str:
    """A program's file, under a name that nobody has imported."""
    name = f"shop_{uuid4().hex}.py"
    Path(name).write_text(text)
    return name


@pytest.fixture
def program(cli: Cli) -> str:
    return written(PROGRAM)


@pytest.fixture
def store(program: str, store_url: str) -> Iterator[Store]:
    """With the triggers of the program, one of which has made a job and refused a message."""
    app = find_app(program)
    store = open_store(store_url)
    store.triggers.declare([trigger.declared for trigger in app.triggers.values()], app="shop")
    grip = store.locks.acquire("trigger place", new_member_id(), TTL)
    assert grip is not None
    raw, rest = b"\xffnope", b'{"kind":"Message","seen":{"id":"m2","headers":{"x":1}}}'
    refused = Refused(id=new_job_id(), raw=raw, rest=rest, reason="the body is no JSON")
    arrivals = [Arrival(event="m1", job=make_job()), Arrival(event="m2", refused=refused)]
    store.triggers.take("place", arrivals, term=grip.fence, position=b'{"after":2}', lag=12)
    yield store
    store.close()


def test_the_list_shows_what_each_made_what_waits_and_what_was_refused(cli: Cli, store: Store) -> None:
    said = cli("triggers", "list")
    assert said.code == 0
    [place] = [line for line in said.out.splitlines() if "place" in line]
    assert place.split()[:7] == ["place", "message", '{"after":2}', "1", "1.0", "12", "1"]
    assert place.split()[-1] == "reading"
    assert "subscribed" in said.out
    told = cli("triggers", "list", "--json").document["triggers"]
    assert [(each["name"], each["kind"], each["jobs"], each["waiting"]) for each in told] == [
        ("place", "message", 1, 12), ("tell", "event", 0, None),
    ]  # fmt: skip


def test_no_password_is_ever_shown(cli: Cli, store: Store) -> None:
    for arguments in (("list",), ("show", "place"), ("show", "place", "--json")):
        said = cli("triggers", *arguments)
        assert "secret" not in said.out + said.err


def test_one_is_shown_with_its_position_and_its_error(cli: Cli, store: Store) -> None:
    store.triggers.tell("place", error="amqp://guest@host does not answer")
    said = cli("triggers", "show", "place")
    assert 'position  {"after":2}' in said.out
    assert "state     trying again" in said.out
    assert "amqp://guest@host does not answer" in said.out
    assert cli("triggers", "show", "place", "--json").document["position"] == {"after": 2}


def test_an_error_that_is_over_is_still_shown_with_when_it_was(cli: Cli, store: Store) -> None:
    store.triggers.tell("place", error="amqp://guest@host does not answer")
    store.triggers.tell("place", error=None)
    said = cli("triggers", "show", "place")
    assert "state       reading" in said.out
    assert "last error  amqp://guest@host does not answer, 0." in said.out
    assert "all was well since" in said.out
    document = cli("triggers", "show", "place", "--json").document
    assert (document["error"], document["last_error"]) == (None, "amqp://guest@host does not answer")
    assert document["error_at"] < document["looked_at"]


def test_what_is_still_to_be_looked_at_stands_beside_all_that_was_refused(cli: Cli, store: Store) -> None:
    [refused] = store.triggers.refused(None, None, 10)
    cli("triggers", "discard", str(refused.id))
    assert "0 of 1" in cli("triggers", "list").out
    document = cli("triggers", "show", "place", "--json").document
    assert (document["refused"], document["refused_now"]) == (1, 0)


def test_pause_and_resume(cli: Cli, store: Store) -> None:
    assert cli("triggers", "pause", "place").out == "place is paused.\n"
    assert cli("triggers", "pause", "place").out == "place was paused before.\n"
    assert "paused by" in cli("triggers", "list").out
    assert cli("triggers", "resume", "place", "--json").document == {"trigger": "place", "resumed": True}
    assert cli("triggers", "resume", "place").out == "place was not paused.\n"


def test_a_subscription_is_not_paused_and_says_what_to_do(cli: Cli, store: Store) -> None:
    said = cli("triggers", "pause", "tell")
    assert said.code == exits.USAGE
    assert "lateshift queues pause" in said.err


def test_a_misspelt_name_is_answered_with_those_there_are(cli: Cli, store: Store) -> None:
    for command in ("show", "pause", "resume", "refused"):
        said = cli("triggers", command, "plce")
        assert said.code == exits.NOT_FOUND
        assert "Did you mean place?" in said.err
    assert "There are: place, tell." in cli("triggers", "show", "xyz").err


def test_what_was_refused_is_listed_with_why_and_given_back_byte_for_byte(
    cli: Cli, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    [refused] = store.triggers.refused(None, None, 10)
    assert "the body is no JSON" in cli("triggers", "refused").out
    output = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(output))
    assert run(["triggers", "raw", str(refused.id)]) == 0
    assert output.getvalue() == b"\xffnope"


def test_what_was_refused_as_json(cli: Cli, store: Store) -> None:
    document = cli("triggers", "refused", "place", "--json").document
    [told] = document["refused"]
    assert (told["raw_base64"], told["came_with"]) == ("/25vcGU=", {"id": "m2", "headers": {"x": 1}})
    assert document["next_after"] is None


def test_a_retry_is_refused_again_until_the_code_is_mended(cli: Cli, store: Store, program: str) -> None:
    [refused] = store.triggers.refused(None, None, 10)
    said = cli("triggers", "retry", program, str(refused.id))
    assert said.code == exits.FOUND
    assert "no JSON" in said.out
    mended = PROGRAM.replace('"orders")', '"orders", decode=lambda message: {"n": len(message.body)})')
    said = cli("triggers", "retry", written(mended), "--trigger", "place", "--json")
    assert said.code == 0
    [job] = said.document["jobs"]
    assert cli("jobs", "show", job, "--json").document["arguments"] == {"order": {"n": 5}}
    assert cli("triggers", "refused").out == "Nothing was refused.\n"


def test_what_was_refused_can_be_let_go(cli: Cli, store: Store) -> None:
    [refused] = store.triggers.refused(None, None, 10)
    assert cli("triggers", "discard", str(refused.id)).out == "1 event discarded.\n"
    assert cli("triggers", "discard", str(refused.id)).code == exits.NOT_FOUND
    assert cli("triggers", "raw", str(refused.id)).code == exits.NOT_FOUND
    assert cli("triggers", "discard", "nonsense").code == exits.USAGE


def test_what_was_refused_is_named_by_the_digits_that_the_table_shows(
    cli: Cli, store: Store, program: str
) -> None:
    [refused] = store.triggers.refused(None, None, 10)
    short = f"…{str(refused.id)[-6:]}"
    said = cli("triggers", "refused").out
    assert short in said
    assert str(refused.id) not in said
    assert cli("triggers", "raw", short, "--json").document["id"] == str(refused.id)
    assert cli("triggers", "refused", "--after", short).out == "Nothing was refused.\n"
    again = cli("triggers", "retry", program, short)
    assert (again.code, short in again.out) == (exits.FOUND, True)
    assert cli("triggers", "retry", program, "00000000").code == exits.NOT_FOUND
    assert cli("triggers", "raw", "abc").code == exits.USAGE
    assert cli("triggers", "discard", refused.id.hex[:13]).out == "1 event discarded.\n"


def test_digits_that_fit_several_do_nothing_and_name_them(cli: Cli, store: Store) -> None:
    [refused] = store.triggers.refused(None, None, 10)
    other = Refused(id=new_job_id(), raw=b"", rest=b"{}", reason="no")
    term = query(store, "SELECT fence FROM {lock} WHERE name = 'trigger place'")[0][0]
    store.triggers.take("place", [Arrival(event="m3", refused=other)], term=term)
    said = cli("triggers", "discard", refused.id.hex[:4])
    assert said.code == exits.USAGE
    assert str(refused.id) in said.err
    assert str(other.id) in said.err
    assert len(store.triggers.refused(None, None, 10)) == 2


def test_without_any_it_says_how_to_make_one(cli: Cli) -> None:
    assert "@app.on_message" in cli("triggers", "list").out
    assert cli("triggers", "show", "x").code == exits.NOT_FOUND
