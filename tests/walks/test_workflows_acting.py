"""`lateshift workflows signal`, `cancel`, `undo`, `resume` and `resubmit-step`, as an operator uses them, on both stores."""

from collections.abc import Iterator

import pytest

from lateshift import Flow, Permanent, State
from lateshift.cli import exits
from lateshift.cli.options import operator
from lateshift.model.ids import new_job_id
from lateshift.model.outcome import DeadLettered
from lateshift.model.workflow import run as limits
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.workflow_contract import Told
from lateshift.testing import Kit
from tests.store_contract.driving import DAY, Worker, query
from tests.walks.commands import Cli
from tests.walks.workflow_shop import Shop, shop_on, short


@pytest.fixture
def shop(cli: Cli, store_url: str) -> Iterator[Shop]:
    with shop_on(store_url) as shop:
        yield shop


@pytest.fixture
def kit(shop: Shop) -> Kit:
    return shop.kit


@pytest.fixture
def store(cli: Cli, store_url: str) -> Iterator[Store]:
    """As commands open it: nothing stands between."""
    store = open_store(store_url)
    yield store
    store.close()


# -- telling them things -----------------------------------------------------------------------------------------------


def test_a_signal_reaches_its_run_with_its_data(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    said = cli("workflows", "signal", short(job), "approve", "--data", '{"by": "ann"}')
    assert (said.code, said.out) == (0, f"The run {job.id} is told approve.\n")
    kit.drain()
    assert kit.result(job) == {"by": "ann"}


def test_a_signal_with_a_key_is_kept_once(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    first = cli("workflows", "signal", str(job.id), "other", "--key", "k1", "--json").document
    assert first == {"run": str(job.id), "signal": "other", "kept": True, "awaited": ["approve"]}
    again = cli("workflows", "signal", str(job.id), "other", "--key", "k1")
    assert (again.code, "told this before, with the key k1" in again.out) == (0, True)
    other = cli("workflows", "signal", str(job.id), "approve", "--key", "k1")
    assert (other.code, "The key 'k1' was used for a signal to the run" in other.err) == (2, True)
    assert "told       other: not taken yet" in cli("workflows", "show", str(job.id)).out
    assert cli("workflows", "show", str(job.id), "--json").document["signals"] == [
        {"name": "other", "data": None}
    ]


def test_whoever_tells_a_run_what_it_does_not_wait_for_hears_so_at_once(
    cli: Cli, kit: Kit, shop: Shop
) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    said = cli("workflows", "signal", str(job.id), "aprove")
    assert (said.code, "It waits for approve: aprove is kept until its code asks for that." in said.out) == (
        0,
        True,
    )


def test_a_run_that_has_not_begun_can_be_told_something(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.approval.enqueue(7)
    said = cli("workflows", "signal", str(job.id), "approve", "--data", "1")
    assert (said.code, "has not begun; the signal approve waits for it" in said.out) == (0, True)
    kit.drain()
    assert kit.result(job) == 1


def test_a_signal_that_nobody_will_take_is_refused(
    cli: Cli, kit: Kit, shop: Shop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, waiting, other = shop.paying.enqueue("good"), shop.approval.enqueue(7), shop.plain.enqueue(1)
    kit.drain()
    said = cli("workflows", "signal", str(ended.id), "approve")
    assert (said.code, "has ended" in said.err) == (exits.NOT_FOUND, True)
    said = cli("workflows", "signal", str(new_job_id()), "approve")
    assert (said.code, "There is no run" in said.err) == (exits.NOT_FOUND, True)
    assert cli("workflows", "signal", str(other.id), "approve").code == exits.NOT_FOUND
    monkeypatch.setattr(type(store.workflows), "signal", lambda *_, **__: Told.FULL)
    said = cli("workflows", "signal", str(waiting.id), "approve")
    assert (said.code, f"{limits.SIGNALS_MOST:,} signals" in said.err) == (exits.NOT_FOUND, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["approve", "--data", "yes"], """no JSON. Text stands in double quotes: --data '"yes"'"""),
        (["", "--data", "1"], "The name of a signal must have 1 to 200 characters"),
        (["approve", "--key", "k" * 2000], "key must have 1 to"),
        (["approve", "--data", f'"{"x" * 300_000}"'], "over the limit of 262,144"),
    ],
)
def test_a_signal_that_cannot_be_kept_is_refused_as_in_code(
    cli: Cli, kit: Kit, shop: Shop, arguments: list[str], says: str
) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    said = cli("workflows", "signal", str(job.id), *arguments)
    assert (said.code, says in said.err) == (exits.USAGE, True), said.err


# -- ending them -------------------------------------------------------------------------------------------------------


def test_cancel_undoes_first_what_was_done(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    said = cli("workflows", "cancel", short(job))
    assert said.code == 0
    assert said.out.startswith("1 run told to end; what was done is undone first")
    assert cli("workflows", "show", str(job.id), "--json").document["state"] == "cancelling"
    assert "what was done is undone first" in cli("workflows", "show", str(job.id)).out
    kit.drain()
    assert shop.done == ["do stock", "undo stock"]
    assert cli("workflows", "show", str(job.id), "--json").document["state"] == "cancelled"
    assert "– 2 wait for approve given up" in cli("workflows", "show", str(job.id)).out
    again = cli("workflows", "cancel", str(job.id), "--json")
    assert again.code == exits.NOT_FOUND
    assert again.document == {"cancelled": [], "unchanged": [{"id": str(job.id), "state": "cancelled"}]}
    assert "is cancelled and stays so" in again.err


def test_jobs_cancel_says_which_were_runs_that_undo_what_they_did(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    listed = cli("jobs", "list").out
    assert "run, waits for the signal approve" in " ".join(listed.split())
    said = cli("jobs", "cancel", str(job.id), str(shop.plain.enqueue(2).id))
    assert (
        "2 jobs cancelled, or told to stop.\n1 of these is a run of a workflow. It has begun: what it did is undone"
        in said.out
    )
    kit.drain()
    assert shop.done == ["do stock", "undo stock"]


def test_whoever_resubmits_runs_is_told_before_that_they_begin_from_nothing(
    cli: Cli, kit: Kit, shop: Shop
) -> None:
    shop.broken = False
    shop.failing.enqueue()
    kit.drain()
    begins = "1 of these is a run of a workflow. It begins from nothing: all of its steps run again."
    assert begins in " ".join(cli("jobs", "resubmit", "--task", "failing", "--show").out.split())
    assert cli("jobs", "resubmit", "--task", "failing", "--show", "--json").document["runs"]["anew"] == 1
    assert begins in cli("jobs", "resubmit", "--task", "failing").err


def test_cancel_refuses_what_is_no_run_and_says_what_to_do(cli: Cli, kit: Kit, shop: Shop) -> None:
    run, other, missing = shop.approval.enqueue(7), shop.pack.enqueue(1), new_job_id()
    kit.drain()
    said = cli("workflows", "cancel", str(run.id), str(other.id), str(missing))
    assert said.code == exits.NOT_FOUND
    assert said.out.startswith("1 run told to end")
    assert f"To cancel it: lateshift jobs cancel {other.id}" in said.err
    assert f"job {missing} is not in the store" in said.err
    assert other.state is State.READY


def test_undo_says_why_and_undoes_in_reverse(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.paying.enqueue("old")
    kit.drain()
    said = cli("workflows", "undo", short(job), "--why", "the customer has gone")
    assert (said.code, said.out) == (0, f"The run {job.id} is being undone, the last step first.\n")
    again = cli("workflows", "undo", short(job), "--why", "once more")
    assert (again.code, "is undoing already" in again.err) == (exits.NOT_FOUND, True)
    kit.drain()
    assert shop.done == ["do stock", "undo stock"]
    document = cli("workflows", "show", str(job.id), "--json").document
    assert (document["state"], document["why"]) == ("undone", "the customer has gone")
    ended = cli("workflows", "undo", str(job.id), "--why", "again")
    assert (ended.code, "has ended (undone)" in ended.err) == (exits.NOT_FOUND, True)
    assert cli("workflows", "undo", str(job.id)).code == exits.USAGE
    assert cli("workflows", "undo", str(job.id), "--why", "").code == exits.USAGE


# -- letting them go on ------------------------------------------------------------------------------------------------


def test_a_held_run_goes_on_when_it_is_resumed(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.paying.enqueue("old")
    kit.drain()
    assert f"Go on: lateshift workflows resume {short(job)}" in cli("workflows", "show", str(job.id)).out
    shop.broken = False
    assert cli("workflows", "resume", short(job)).out == f"The run {job.id} goes on.\n"
    kit.drain()
    assert kit.result(job) == "did old"


def test_what_could_not_be_undone_is_tried_again_when_it_is_resumed(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.failing.enqueue()
    kit.drain()
    shop.broken = False
    assert cli("workflows", "resume", str(job.id), "--json").document == {
        "run": str(job.id),
        "resumed": True,
    }
    kit.drain()
    assert shop.done == ["do stock", "do card", "undo stock", "refund card"]
    assert cli("workflows", "show", str(job.id), "--json").document["state"] == "undone"


def test_a_run_that_died_with_its_workers_goes_on_where_it_stood(
    cli: Cli, kit: Kit, shop: Shop, store: Store
) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    cli("workflows", "signal", str(job.id), "approve", "--data", "1")
    worker = Worker(store)
    assert worker.settle(worker.lease_one(), DeadLettered("worker_lost", b"[]", DAY))
    assert "worker lost" in cli("workflows", "list", "--state", "worker_lost").out
    assert cli("workflows", "resume", str(job.id)).code == 0
    kit.drain()
    assert kit.result(job) == 1
    assert shop.done == ["do stock"]


def test_where_there_is_nothing_to_resume_it_says_why(cli: Cli, kit: Kit, shop: Shop) -> None:
    waiting, completed = shop.approval.enqueue(7), shop.paying.enqueue("good")
    shop.broken = False
    undone = shop.failing.enqueue()
    kit.drain()
    for job, says in (
        (waiting, "is waiting, not held: it waits for the signal approve. `lateshift workflows signal"),
        (completed, "has completed: there is nothing to resume"),
        (undone, "`lateshift jobs resubmit"),
    ):
        said = cli("workflows", "resume", str(job.id))
        assert (said.code, says in said.err) == (exits.NOT_FOUND, True), said.err
    cli("workflows", "cancel", str(waiting.id))
    assert "is cancelling: nothing holds it" in cli("workflows", "resume", str(waiting.id)).err


def test_a_held_step_runs_again_with_the_arguments_that_it_is_given(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.paying.enqueue("old")
    kit.drain()
    new = '{"what": "new"}'
    dry = cli("workflows", "resubmit-step", short(job), "2", "--args", new, "--dry-run")
    assert dry.code == 0
    assert dry.out.splitlines()[:2] == ['- charge("old")', '+ charge(what="new")']
    assert "Nothing was written" in dry.out
    kit.drain()
    assert cli("workflows", "show", str(job.id), "--json").document["state"] == "held"
    told = cli("workflows", "resubmit-step", short(job), "2", "--args", new, "--json").document
    assert told == {
        "run": str(job.id), "step": "2", "name": "charge", "before": {"args": ["old"]}, "after": {"what": "new"},
        "resubmitted": True,
    }  # fmt: skip
    kit.drain()
    assert kit.result(job) == "did new"
    said = cli("workflows", "show", str(job.id)).out
    assert '2 charge(what="new")' in said
    assert "arguments of an operator" in said


def test_what_a_step_is_given_is_shown_as_no_terminal_obeys_it(cli: Cli, kit: Kit, shop: Shop) -> None:
    def fall(what: str) -> None:
        raise Permanent(what)

    @kit.app.workflow(on_failure="hold")
    async def falling(flow: Flow) -> None:
        await flow.step(fall, "old\x1b[31m\x9b2J")

    job = falling.enqueue()
    kit.drain()
    said = cli(
        "workflows", "resubmit-step", short(job), "1", "--args", '{"what": "\\u202enew\\u009b"}', "--dry-run"
    )
    assert said.code == 0
    assert not {"\x1b", "\x9b", "\u202e"} & set(said.out)
    assert "old" in said.out.splitlines()[0]
    assert "new" in said.out.splitlines()[1]


def test_a_held_step_runs_again_as_it_was(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.paying.enqueue("old")
    kit.drain()
    shop.broken = False
    said = cli("workflows", "resubmit-step", str(job.id), "2")
    assert said.out.splitlines() == [
        '- charge("old")',
        "  with the same arguments",
        f"Step 2 of the run {job.id} begins anew, and the run goes on.",
    ]
    kit.drain()
    assert kit.result(job) == "did old"


def test_each_of_two_held_steps_can_be_mended(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.twice.enqueue()
    kit.drain()
    assert cli("workflows", "resubmit-step", str(job.id), "1", "--args", '{"what": "a"}').code == 0
    kit.drain()
    assert cli("workflows", "resubmit-step", str(job.id), "2", "--args", '{"what": "b"}').code == 0
    kit.drain()
    assert kit.result(job) == ["did a", "did b"]


def test_a_run_goes_on_with_the_held_step_that_nobody_mended(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.twice.enqueue()
    kit.drain()
    assert cli("workflows", "resubmit-step", str(job.id), "1", "--args", '{"what": "a"}').code == 0
    kit.drain()
    shop.broken = False
    assert cli("workflows", "resume", str(job.id)).code == 0
    kit.drain()
    assert kit.result(job) == ["did a", "did stolen"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["1"], exits.NOT_FOUND, "Step 1 do of the run {id} is completed, not held"),
        (["9"], exits.NOT_FOUND, "has no step 9. Held: 2 charge."),
        (["two"], exits.USAGE, "'two' is no number of a step, such as 3 or 3.1.2.1"),
        (["2", "--args", '["new"]'], exits.USAGE, "Step 2 charge takes an object with the arguments by name"),
        (["2", "--args", "null"], exits.USAGE, "--args null gives no arguments: leave --args out"),
        (["2", "--args", "new"], exits.USAGE, "is no JSON"),
        (["2", "--args", "{order: 8}"], exits.USAGE, "is no JSON: object keys must be strings (byte 1)."),
        (["2", "--args", f'{{"what": "{"x" * 300_000}"}}'], exits.USAGE, "over the limit of 262,144"),
    ],
)
def test_what_cannot_be_resubmitted_is_said(
    cli: Cli, kit: Kit, shop: Shop, arguments: list[str], code: int, says: str
) -> None:
    job = shop.paying.enqueue("old")
    kit.drain()
    said = cli("workflows", "resubmit-step", str(job.id), *arguments)
    assert said.code == code
    assert says.format(id=job.id) in said.err
    assert job.state is State.SCHEDULED


def test_no_step_of_a_run_that_has_ended_runs_again(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.failing.enqueue()
    kit.drain()
    said = cli("workflows", "resubmit-step", str(job.id), "3")
    assert said.code == exits.NOT_FOUND
    assert "has ended (compensation failed)" in said.err


@pytest.mark.parametrize("told", ["undo", "cancel"])
def test_a_run_that_is_to_be_undone_while_no_code_fits_it_is_listed_as_held_and_undone_when_resumed(
    cli: Cli, kit: Kit, shop: Shop, told: str
) -> None:
    job = shop.approval.enqueue(7)
    kit.drain()
    fits = kit.app._tasks.pop("approval")

    async def approval(flow: Flow, order: int) -> None:
        await flow.step(shop.do, "another")

    kit.app.workflow(approval)
    asked = (
        ("undo", str(job.id), "--why", "the customer has gone") if told == "undo" else ("cancel", str(job.id))
    )
    assert cli("workflows", *asked).code == 0
    kit.drain()
    assert short(job) in cli("workflows", "list", "--state", "held").out
    said = cli("workflows", "show", str(job.id)).out
    assert "approval is held" in said
    assert ("the customer has gone; it is to be undone, but" if told == "undo" else "asked for by") in said
    assert f"Undo it, with code that fits: lateshift workflows resume {short(job)}" in said
    kit.app._tasks["approval"] = fits
    resumed = cli("workflows", "resume", short(job))
    assert (resumed.code, resumed.out) == (0, f"The run {job.id} goes on: what it did is undone.\n")
    kit.drain()
    assert shop.done == ["do stock", "undo stock"]
    ended = "undone" if told == "undo" else "cancelled"
    assert cli("workflows", "show", str(job.id), "--json").document["state"] == ended


# -- who did it ----------------------------------------------------------------------------------------------------------


def test_what_operators_do_stands_in_the_audit(cli: Cli, kit: Kit, shop: Shop, store: Store) -> None:
    job = shop.paying.enqueue("old")
    kit.drain()
    cli("workflows", "signal", str(job.id), "hello")
    cli("workflows", "resubmit-step", str(job.id), "2")
    kit.drain()
    cli("workflows", "resume", str(job.id))
    kit.drain()
    cli("workflows", "undo", str(job.id), "--why", "enough")
    rows = query(store, "SELECT action, actor FROM {audit} WHERE actor <> 'the test' ORDER BY at")
    assert rows == [
        (action, operator()) for action in ("signal", "resubmit step", "workflow forward", "workflow undoing")
    ]
