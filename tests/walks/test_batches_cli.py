"""`lateshift batches`: tables and a bar for people, JSON for programs, exit codes for scripts."""

import io
import sys
from collections.abc import Iterator

import pytest

from lateshift import NO_RETRY, Batch, Lateshift
from lateshift.cli import batch_view
from lateshift.testing import testing
from lateshift.testing.kit import Kit
from tests.digits import first_digits
from tests.walks.commands import Cli


@pytest.fixture
def shop(store_url: str) -> Iterator[tuple[Lateshift, Kit]]:
    app = Lateshift("shop", store=store_url)

    @app.task(retry=NO_RETRY)
    def pack(order: int) -> str:
        if order < 0:
            raise RuntimeError(f"no order {order}")
        return f"packed {order}"

    @app.task
    def tell(what: str) -> None: ...

    with testing(app, store=store_url) as kit:
        yield app, kit


def made(shop: tuple[Lateshift, Kit], *orders: int) -> Batch:
    app, _ = shop
    pack, tell = app.find_task("pack"), app.find_task("tell")
    return app.batch(
        (pack.call(order) for order in orders),
        then=tell.call("done"),
        on_failure=tell.call("oh"),
        name="orders",
    )


def test_list_says_so_when_there_are_none(cli: Cli) -> None:
    assert cli("batches", "list").out == "No batches.\n"
    assert cli("batches", "list", "--json").document == {"batches": [], "next_before": None}


def test_list_pages_from_the_newest_to_the_oldest(cli: Cli, shop: tuple[Lateshift, Kit]) -> None:
    ids = [str(made(shop, 1).id) for _ in range(3)]
    first = cli("batches", "list", "--limit", "2", "--json").document
    assert [each["id"] for each in first["batches"]] == ids[:0:-1]
    rest = cli("batches", "list", "--before", first["next_before"], "--json").document
    assert ([each["id"] for each in rest["batches"]], rest["next_before"]) == (ids[:1], None)

    said = cli("batches", "list", "--limit", "2").out
    assert "orders" in said
    assert "running" in said
    assert f"More: add --before {ids[1]}" in said


def test_show_tells_how_far_it_is_and_what_follows(cli: Cli, shop: tuple[Lateshift, Kit]) -> None:
    batch = made(shop, 1, 2, -3)
    shop[1].drain()

    shown = cli("batches", "show", batch.id.hex[-6:], "--json").document
    assert shown["id"] == str(batch.id)
    assert [shown[name] for name in ("state", "total", "completed", "failed")] == ["failed", 3, 2, 1]
    assert (shown["on_failure_enqueued"], shown["then_enqueued"], shown["finished"]) == (True, False, True)
    said = cli("batches", "show", str(batch.id)).out
    assert "orders is failed" in said
    assert "3, of which 3 have ended (100%)" in said
    assert "not yet enqueued" in said
    assert cli("jobs", "show", str(batch.job_id(0)), "--json").document["batch"] == str(batch.id)
    assert str(batch.id) in cli("jobs", "show", str(batch.job_id(0))).out


def test_a_batch_that_is_not_there_or_not_the_only_one_is_said_to_be(
    cli: Cli, shop: tuple[Lateshift, Kit]
) -> None:
    ids = [made(shop, 1).id for _ in range(2)]

    said = cli("batches", "show", "00000000")
    assert (said.code, said.err.startswith("lateshift: There is no batch …00000000 in the store; ")) == (
        4,
        True,
    )
    assert said.err.endswith("`lateshift batches list` shows those there are.\n")
    assert cli("batches", "show", "0" * 32).code == 4
    said = cli("batches", "cancel", first_digits(ids))
    assert (said.code, "could be any of these" in said.err, str(ids[1]) in said.err) == (2, True, True)
    said = cli("batches", "show", "squares")
    assert (said.code, "'squares' is no batch id" in said.err) == (2, True)


def test_watch_waits_and_its_exit_code_tells(
    cli: Cli, shop: tuple[Lateshift, Kit], monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = made(shop, 1, 2), made(shop, 1, -2)
    shop[1].drain()

    said = cli("batches", "watch", str(good.id))
    assert (said.code, said.out) == (0, "2 of 2 jobs completed.\n")
    said = cli("batches", "watch", str(bad.id), "--json")
    assert (said.code, said.document["failed"]) == (1, 1)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    view = batch_view.watched(bad)
    assert (view.completed, view.failed) == (1, 1)
    assert "2 of 2, 0 running" in terminal.getvalue()
    assert "1 failed" in terminal.getvalue()


def test_cancel_ends_all_that_has_not_ended(cli: Cli, shop: tuple[Lateshift, Kit]) -> None:
    batch = made(shop, 1, 2)

    said = cli("batches", "cancel", str(batch.id))
    assert (said.code, said.out) == (0, f"The batch {batch.id} is cancelled: 2 cancelled.\n")
    assert cli("batches", "show", str(batch.id), "--json").document["state"] == "cancelled"
    done = made(shop, 1)
    shop[1].drain()
    said = cli("batches", "cancel", str(done.id), "--json")
    assert (said.code, said.document) == (4, {"batch": str(done.id), "cancelled": False})


def test_resubmit_runs_what_failed_again(cli: Cli, shop: tuple[Lateshift, Kit]) -> None:
    batch = made(shop, 1, -2, -3)
    shop[1].drain()

    assert cli("batches", "resubmit", str(batch.id)).out == "2 jobs ready again.\n"
    assert cli("batches", "resubmit", str(batch.id)).out == "No job of this batch is a dead letter.\n"
    shop[1].drain()
    said = cli("batches", "resubmit", str(batch.id), "--json")
    assert said.document == {"batch": str(batch.id), "resubmitted": 2}


def test_seal_ends_a_batch_whose_producer_died(cli: Cli, shop: tuple[Lateshift, Kit]) -> None:
    batch = made(shop, 1)
    said = cli("batches", "seal", str(batch.id))
    assert (said.code, said.out) == (4, f"The batch {batch.id} was sealed before, with 1 job.\n")


def test_jobs_are_listed_by_batch(cli: Cli, shop: tuple[Lateshift, Kit]) -> None:
    batch, other = made(shop, 1, -1, 2), made(shop, 3)
    shop[1].drain()
    ids = [str(batch.job_id(place)) for place in (2, 1, 0)]
    for named in (str(batch.id), batch.id.hex[-8:], f"…{batch.id.hex[-6:]}"):
        first = cli("jobs", "list", "--batch", named, "--limit", "2", "--json").document
        assert [job["id"] for job in first["jobs"]] == ids[:2]
        rest = cli("jobs", "list", "--batch", named, "--before", first["next_before"], "--json").document
        assert [job["id"] for job in rest["jobs"]] == ids[2:]
    dead = cli("jobs", "list", "--batch", str(batch.id), "--state", "dead", "--json").document["jobs"]
    assert [job["id"] for job in dead] == ids[1:2]
    assert ids[1] in cli("jobs", "list", "--batch", str(batch.id)).out
    said = cli("jobs", "list", "--batch", str(other.id), "--state", "ready")
    assert said.out == f"No jobs with batch {other.id}, state ready.\n"
    assert cli("jobs", "list", "--batch", "00000000").code == 4
    assert cli("jobs", "list", "--batch", first_digits([batch.id, other.id])).code == 2
    assert cli("jobs", "list", "--batch", "nonsense").code == 2
