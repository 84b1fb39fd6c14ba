"""`lateshift pipelines`: what an operator sees of items, without the program, on both stores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lateshift import Flow, Lateshift, Permanent, State, fan_in, fan_out
from lateshift.cli import exits
from lateshift.model.workflow.run import Phase
from lateshift.operating import runs
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.testing import Kit, testing
from lateshift.workflow.pipeline import Pipeline
from tests.store_contract.driving import query
from tests.walks.commands import Cli


class Shop:
    def __init__(self, app: Lateshift) -> None:
        @app.task(queue="texts")
        def parse(text: str) -> list[int]:
            return [int(part) for part in text.split(",")]

        @app.task(queue="numbers")
        def double(number: int) -> int:
            if number == 13:
                raise Permanent("unlucky")
            return number * 2

        @app.task(queue="sums")
        def total(numbers: list[int]) -> int:
            return sum(numbers)

        self.orders: Pipeline[[str], int] = app.pipeline(
            parse | fan_out(double) | fan_in(total), name="orders"
        )
        self.numbers: Pipeline[[int], int] = app.pipeline(double, name="numbers")


@pytest.fixture
def app(store_url: str) -> Lateshift:
    return Lateshift("shop", store=store_url)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    yield store
    store.close()


@pytest.fixture
def shop(app: Lateshift, cli: Cli) -> Shop:
    return Shop(app)


@pytest.fixture
def kit(app: Lateshift, shop: Shop, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


def test_the_list_tells_how_far_the_items_of_each_are(cli: Cli, kit: Kit, shop: Shop) -> None:
    assert "No pipeline has an item that has begun." in cli("pipelines", "list").out
    for text in ("1,2", "3", "13,4"):
        shop.orders.enqueue(text)
    shop.numbers.enqueue(13)
    kit.drain()
    shop.orders.enqueue("5")
    lines = [line.strip().split(maxsplit=7) for line in cli("pipelines", "list").out.splitlines()[2:]]
    assert lines == [
        ["numbers", "0", "0", "1", "0", "0", "0", "double"],
        ["orders", "1", "0", "1", "2", "0", "0", "parse | fan_out(double) | fan_in(total)"],
    ]
    document = cli("pipelines", "list", "--json").document
    assert [each["name"] for each in document["pipelines"]] == ["numbers", "orders"]
    assert document["count_limit"] == 10_000


def test_one_is_shown_with_what_stands_at_each_filter(cli: Cli, kit: Kit, shop: Shop, app: Lateshift) -> None:
    shop.orders.enqueue("13,4")
    kit.drain()
    app.store.queues.pause("numbers", by="the test")
    shop.orders.enqueue("1,2,3")
    kit.drain()
    said = cli("pipelines", "show", "orders")
    assert "orders: parse | fan_out(double) | fan_in(total)" in said.out
    assert [line.split() for line in said.out.splitlines()[-6:-2]] == [
        ["─" * len(said.out.splitlines()[-6])],
        ["parse", "0", "0", "0", "0", "texts"],
        ["double", "3", "0", "1", "0", "numbers"],
        ["total", "0", "0", "0", "0", "sums"],
    ]
    assert "What is held: lateshift workflows list --name orders --state held" in said.out
    assert "step 3.1.1.1 double failed" in cli("workflows", "list", "--name", "orders", "--state", "held").out
    document = cli("pipelines", "show", "orders", "--json").document
    assert (document["under_way"], document["held"]) == (1, 1)
    assert document["filters"][1] == {
        "name": "double", "queue": "numbers", "waiting": 3, "running": 0, "held": 1, "failed": 0,
    }  # fmt: skip


def test_a_held_element_is_mended_by_its_number(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.orders.enqueue("13,4")
    kit.drain()
    assert "2 of 3: fan_out(double)" in cli("workflows", "show", str(job.id)).out
    said = cli("workflows", "resubmit-step", str(job.id), "3.1.1.1", "--args", '{"number": 14}')
    assert said.code == 0
    kit.drain()
    assert kit.result(job) == 36


def test_a_name_that_nobody_has_is_told_with_those_there_are(cli: Cli, kit: Kit, shop: Shop) -> None:
    shop.orders.enqueue("1")
    kit.drain()
    said = cli("pipelines", "show", "order")
    assert said.code == exits.NOT_FOUND
    assert "No item of a pipeline order has begun and is still kept. Did you mean orders?" in said.err


def test_an_item_that_is_held_at_a_fan_out_is_drawn_counted_and_mended(
    cli: Cli, kit: Kit, app: Lateshift
) -> None:
    @app.task
    def anything(text: str) -> Any:
        return {"no": "list"}

    @app.task
    def same(number: int) -> int:
        return number

    first: Any = anything
    pipeline: Pipeline[..., Any] = app.pipeline(first | fan_out(same), name="odd")
    id = str(pipeline.enqueue("1").id)
    kit.drain()
    drawn = cli("workflows", "graph", "--run", id, "--format", "json").document
    assert ("fan_out", "held") in [(node["label"], node["state"]) for node in drawn["nodes"]]
    assert ["fan_out", "0", "0", "1", "0"] in [
        line.split() for line in cli("pipelines", "show", "odd").out.splitlines()
    ]
    shown = cli("workflows", "show", id).out
    assert "! 3 fan_out held" in shown
    assert "Go on with another list: lateshift workflows resubmit-step" in shown
    refused = cli("workflows", "resubmit-step", id, "3")
    assert refused.code != exits.OK
    assert "would get the same list" in refused.err
    refused = cli("workflows", "resubmit-step", id, "3", "--args", '{"numbers": [1]}')
    assert refused.code != exits.OK
    assert "takes a list with an element for each branch" in refused.err
    said = cli("workflows", "resubmit-step", id, "3", "--args", "[1, 2]")
    assert said.code == exits.OK
    assert "+ fan_out([1,2])" in said.out
    kit.drain()
    assert app.job(id).result() == [1, 2]
    assert "3 fan_out" in cli("workflows", "show", id).out
    assert cli("workflows", "graph", "--run", id).code == exits.OK


def test_an_item_whose_result_is_too_large_says_that_its_code_must_change(
    cli: Cli, kit: Kit, app: Lateshift
) -> None:
    @app.task
    def large(number: int) -> str:
        return "x" * 200_000

    @app.task
    def pair(text: str) -> list[int]:
        return [1, 2]

    id = str(app.pipeline(pair | fan_out(large), name="heavy").enqueue("1").id)
    kit.drain()
    shown = cli("workflows", "show", id).out
    assert "result held" in shown
    assert "resubmit-step" not in shown
    number = next(line.split()[2] for line in shown.splitlines() if "result held" in line)
    refused = cli("workflows", "resubmit-step", id, number, "--args", "{}")
    assert refused.code != exits.OK
    assert "takes no arguments" in refused.err
    drawn = cli("workflows", "graph", "--run", id, "--format", "json").document
    assert ("result", "held") in [(node["label"], node["state"]) for node in drawn["nodes"]]


def test_all_held_items_of_a_pipeline_go_on_together(
    cli: Cli, kit: Kit, shop: Shop, app: Lateshift, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PAGE", 2)
    jobs = [shop.numbers.enqueue(13) for _ in range(5)]
    elsewhere = shop.orders.enqueue("13")
    kit.drain()
    by_hand = shop.numbers.enqueue(13)
    kit.drain()
    assert app.store.workflows.direct(by_hand.id, Phase.HELD, why="ana looks at it", by="ana")

    assert cli("workflows", "resume", "--name", "numbers", "--dry-run").out == (
        "6 runs of numbers would go on. Nothing was written.\n"
    )
    assert shop.numbers.progress().held == 6
    first = cli(
        "workflows", "resume", "--name", "numbers", "--why-like", "unlucky", "--limit", "2", "--json"
    ).document
    assert first == {
        "runs": [str(job.id) for job in (jobs[4], jobs[3])], "resumed": True, "next_before": str(jobs[3].id),
    }  # fmt: skip
    kit.drain()
    said = cli(
        "workflows", "resume", "--name", "numbers", "--why-like", "unlucky", "--before", first["next_before"]
    )
    assert (said.code, said.out) == (exits.OK, "3 runs of numbers go on.\n")
    kit.drain()
    assert len(query(store, "SELECT 1 FROM {audit} WHERE action = 'workflow forward'")) == 5
    assert "ana looks at it" in cli("workflows", "show", str(by_hand.id)).out
    assert shop.orders.progress().held == 1, elsewhere.id
    assert "No run of numbers is held of which why has 'nobody' in it." in (
        cli("workflows", "resume", "--name", "numbers", "--why-like", "nobody").out
    )
    for wrong in ([], [str(jobs[0].id), "--name", "numbers"], [str(jobs[0].id), "--dry-run"]):
        assert cli("workflows", "resume", *wrong).code == exits.USAGE


def test_other_arguments_are_checked_by_the_types_of_a_program_before_anything_is_written(
    cli: Cli, kit: Kit, app: Lateshift, shop: Shop, tmp_path: Path
) -> None:
    @app.workflow(on_failure="hold")
    async def naming(flow: Flow) -> int:
        return await flow.step(app.tasks["double"], 13, name="twice")

    typed, bare = (
        f"{name}_{uuid4().hex}.py" for name in ("typed", "bare")
    )  # each is imported once in a process
    (tmp_path / typed).write_text(
        "from lateshift import Lateshift\napp = Lateshift('shop')\n@app.task\ndef double(number: int) -> int: ...\n"
    )
    (tmp_path / bare).write_text("from lateshift import Lateshift\napp = Lateshift('bare')\n")
    for job, step in ((shop.numbers.enqueue(13), "2"), (naming.enqueue(), "1")):
        kit.drain()
        id = str(job.id)
        wrong = cli("workflows", "resubmit-step", id, step, "--args", '{"number": "x"}', "--app", typed)
        assert wrong.code == exits.USAGE
        assert "double: argument 'number': expected `int`, got `str`" in wrong.err
        gone = cli("workflows", "resubmit-step", id, step, "--args", '{"number": 1}', "--app", bare)
        assert gone.code != exits.OK
        assert "bare has no task double." in gone.err
        assert job.state is State.SCHEDULED
        right = cli("workflows", "resubmit-step", id, step, "--args", '{"number": 7}', "--app", typed)
        assert right.code == exits.OK, right.err
        kit.drain()
        assert job.result() == 14


def test_each_element_of_another_list_is_checked_by_the_types_of_a_program(
    cli: Cli, kit: Kit, app: Lateshift, shop: Shop, tmp_path: Path
) -> None:
    typed = f"typed_{uuid4().hex}.py"
    (tmp_path / typed).write_text(
        "from lateshift import Lateshift\napp = Lateshift('shop')\n@app.task\ndef double(number: int) -> int: ...\n"
    )

    @app.task
    def anything(text: str) -> Any:
        return "no list"

    first: Any = anything
    pipeline: Pipeline[..., Any] = app.pipeline(first | fan_out(app.tasks["double"]), name="odd")
    job = pipeline.enqueue("1")
    kit.drain()
    wrong = cli("workflows", "resubmit-step", str(job.id), "3", "--args", '[1, "x"]', "--app", typed)
    assert wrong.code == exits.USAGE
    assert "element 2: double: argument 'number': expected `int`, got `str`" in wrong.err
    right = cli("workflows", "resubmit-step", str(job.id), "3", "--args", "[1, 7]", "--app", typed)
    assert right.code == exits.OK, right.err
    kit.drain()
    assert job.result() == [2, 14]


def test_whoever_names_a_program_for_a_step_that_is_a_function_is_told_that_nothing_checks_it(
    cli: Cli, kit: Kit, app: Lateshift, tmp_path: Path
) -> None:
    bare = f"bare_{uuid4().hex}.py"
    (tmp_path / bare).write_text("from lateshift import Lateshift\napp = Lateshift('bare')\n")

    def fail(number: int) -> None:
        raise Permanent("no")

    @app.workflow(on_failure="hold")
    async def failing(flow: Flow) -> None:
        await flow.step(fail, 1)

    job = failing.enqueue()
    kit.drain()
    said = cli("workflows", "resubmit-step", str(job.id), "1", "--args", '{"number": "x"}', "--app", bare)
    assert (said.code, "Step 1 fail is no task, so that --app has no types" in said.err) == (
        exits.USAGE,
        True,
    )
