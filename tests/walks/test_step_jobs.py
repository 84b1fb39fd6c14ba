"""The dead job of a step is not run again by itself, where its run would not hear of it; an operator is told what to do instead."""

from collections.abc import Iterator
from typing import Any

import pytest

from lateshift import Flow, Job, Lateshift, Permanent, State
from lateshift.cli import exits
from lateshift.model.job import JobView
from lateshift.testing import Kit, testing
from tests.walks.commands import Cli


class Shop:
    def __init__(self, app: Lateshift) -> None:
        self.done: list[str] = []
        self.broken = True

        @app.task
        def charge(card: str) -> str:
            if self.broken:
                raise Permanent("the bank says no")
            self.done.append(f"charge {card}")
            return card

        @app.workflow(on_failure="hold")
        async def in_order(flow: Flow) -> str:
            return await flow.step(charge.options(session="ann", on_dead="hold"), "red")

        @app.workflow(on_failure="hold")
        async def paying(flow: Flow) -> str:
            return await flow.step(charge, "blue")

        @app.workflow
        async def failing(flow: Flow) -> None:
            await flow.step(charge, "blue")

        @app.workflow
        async def undoing(flow: Flow) -> None:
            await flow.step(self.done.append, "reserve", undo=charge, name="reserve")
            raise ValueError("no")

        @app.workflow
        async def parent(flow: Flow) -> None:
            await flow.child(undoing)

        self.in_order = in_order
        self.charge, self.paying, self.failing, self.undoing, self.parent = (
            charge,
            paying,
            failing,
            undoing,
            parent,
        )


@pytest.fixture
def kit(cli: Cli, store_url: str) -> Iterator[Kit]:
    with testing(Lateshift("shop", store=store_url), store=store_url) as kit:
        yield kit


@pytest.fixture
def shop(kit: Kit) -> Shop:
    return Shop(kit.app)


def dead(kit: Kit, task: Any) -> JobView:
    [found] = kit.dead_letters(task)
    return found


def test_a_held_one_is_resubmitted_as_a_step(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.paying.enqueue()
    kit.drain()
    letter = dead(kit, shop.charge)
    said = cli("jobs", "resubmit", str(letter.id))
    short = f"…{str(job.id)[-6:]}"
    assert said.code == exits.NOT_FOUND
    assert f"is step 1 charge of the workflow paying ({short}), which is held" in said.err
    assert f"`lateshift workflows resubmit-step {short} 1`" in said.err
    shop.broken = False
    kit.drain()
    assert shop.done == []
    assert cli("workflows", "resubmit-step", str(job.id), "1").code == 0
    kit.drain()
    assert kit.result(job) == "blue"


def test_whoever_waits_in_the_session_of_a_held_one_is_told_to_resubmit_the_step(
    cli: Cli, kit: Kit, shop: Shop
) -> None:
    job = shop.in_order.enqueue()
    kit.drain()
    waits = shop.charge.options(session="ann").enqueue("green")
    kit.drain()
    [held] = [reason for reason in waits.explain().reasons if reason.code == "session_held"]
    assert held.do == f"lateshift workflows resubmit-step {job.id} 1"
    assert "when that step is resubmitted, or the session is released" in (held.clears_when or "")
    shop.broken = False
    assert cli(*held.do.split()[1:]).code == 0
    kit.drain()
    assert sorted(shop.done) == ["charge green", "charge red"]
    assert kit.dead_letters(shop.charge) == []


def test_whoever_waits_for_one_whose_run_has_gone_on_is_told_to_release_the_session(
    cli: Cli, kit: Kit, shop: Shop
) -> None:
    job = shop.in_order.enqueue()
    kit.drain()
    waits = shop.charge.options(session="ann").enqueue("green")
    assert cli("workflows", "undo", str(job.id), "--why", "gone").code == 0
    kit.drain()
    [held] = [reason for reason in waits.explain().reasons if reason.code == "session_held"]
    assert held.do == "lateshift sessions release ann --queue default"


def test_one_whose_run_has_gone_on_stays_as_it_is(cli: Cli, kit: Kit, shop: Shop) -> None:
    shop.failing.enqueue()
    kit.drain()
    letter = dead(kit, shop.charge)
    said = cli("jobs", "resubmit", str(letter.id))
    assert (said.code, "has gone on without it" in said.err) == (exits.NOT_FOUND, True)
    assert kit.app.client.resubmit([letter.id]) == []
    assert "lateshift workflows show" in (kit.app.job(letter.id).explain().reasons[0].do or "")


def test_one_that_was_to_undo_is_tried_again_with_its_run(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.undoing.enqueue()
    kit.drain()
    said = cli("jobs", "resubmit", str(dead(kit, shop.charge).id))
    assert "was to undo step 1 reserve of the workflow undoing" in said.err
    assert "`lateshift workflows resume" in said.err
    shop.broken = False
    assert cli("workflows", "resume", str(job.id)).code == 0
    kit.drain()
    assert shop.done == ["reserve", "charge reserve"]


def test_a_child_that_could_not_undo_all_goes_on_by_itself(cli: Cli, kit: Kit, shop: Shop) -> None:
    shop.parent.enqueue()
    kit.drain()
    child = dead(kit, shop.undoing)
    shop.broken = False
    assert cli("jobs", "resubmit", str(child.id)).code == 0
    kit.drain()
    assert shop.done == ["reserve", "charge reserve"]
    assert (
        cli("jobs", "resubmit", str(child.id)).code == exits.NOT_FOUND
    )  # it would begin anew, and nobody would hear


def test_a_filter_leaves_them_out_and_says_so(cli: Cli, kit: Kit, shop: Shop) -> None:
    plain: Job[str] = shop.charge.enqueue("red")
    shop.paying.enqueue()
    kit.drain()
    assert len(kit.dead_letters(shop.charge)) == 2
    shop.broken = False
    said = cli("jobs", "resubmit", "--task", "charge", "--yes")
    assert (said.code, "1 job ready again" in said.out) == (0, True)
    assert "1 dead letter was a step of a workflow and is left out" in said.err
    kit.drain()
    assert shop.done == ["charge red"]
    assert plain.state is State.COMPLETED


def test_so_does_the_program(kit: Kit, shop: Shop) -> None:
    shop.charge.enqueue("red")
    shop.paying.enqueue()
    kit.drain()
    shop.broken = False
    letters = kit.app.dead_letters(task="charge")
    assert letters.plan().count == 1
    assert len(letters.resubmit().ids) == 1
    assert letters.steps == 1
    kit.drain()
    assert shop.done == ["charge red"]
