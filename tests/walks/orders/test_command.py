"""`python -m examples.orders` and its parts, run as a user would."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from examples.orders.remote import Remote
from tests.crash.scene import PATH, ROOT, Group, until
from tests.walks.commands import Said, environment
from tests.walks.orders.desk import shared

ROW = "  {}  {:<14}  {:<12}"


def orders(*arguments: str, **variables: str) -> Said:
    done = subprocess.run(
        [sys.executable, "-m", "examples.orders", *arguments], cwd=ROOT, env=environment(PYTHONPATH=PATH, **variables),
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_one_command_takes_an_order_of_each_kind_to_its_end_and_mends_those_that_failed(
    store_url: str,
) -> None:
    said = orders("--store", shared(store_url))
    assert (said.code, said.err) == (0, "")
    before, alerted, after = said.out.partition("The operator is alerted:")
    assert alerted
    for number, mode in enumerate(["work", "transient", "timeout", "lost"], start=1):
        assert ROW.format(number, mode, "Processed") in before
    for number, mode in [(5, "hang"), (6, "permanent"), (7, "ship permanent")]:
        assert ROW.format(number, mode, "Error") in before
    assert "order 5: step 1 charge failed: complete_by" in after
    assert "order 6: step 1 charge failed: Permanent: 422" in after
    assert after.count("$ lateshift workflows resubmit-step") == 2
    for number, mode in [(5, "hang"), (6, "permanent")]:
        assert ROW.format(number, mode, "Processed") in after
    assert (
        "order 5: Pending, then Processing, then Error, then Processed. Really done: charge, ship." in after
    )
    assert "order 7: Pending, then Processing, then Undone. Really done: charge, refund." in after
    assert after.rstrip().endswith("the piano that nobody could ship is refunded.")


def test_the_parts_run_in_terminals_of_their_own(store_url: str, remote: Remote, tmp_path: Path) -> None:
    here = {"LATESHIFT_STORE": shared(store_url), "ORDERS_REMOTE": remote.url}
    assert orders("submit", "7", **here).out == "Order 7 is posted.\n"
    assert "OrderID" in orders("table", **here).out
    worker = Group(
        ["-m", "lateshift", "work", "examples.orders:app"],
        environment(PYTHONPATH=PATH, **here),
        tmp_path / "log",
    )
    try:
        until(lambda: remote.log == ["charge 7", "ship 7"], "the order is done")
        until(lambda: ROW.format(7, "work", "Processed") in orders("table", **here).out, "the table says so")
    finally:
        worker.kill()


def test_the_services_run_alone_and_are_told_how_to_behave(tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = Group(["-u", "-m", "examples.orders", "serve", "--port", "0"], environment(PYTHONPATH=PATH), log)
    try:
        until(lambda: "/mode" in log.read_text(), "it listens")
        url = log.read_text().split("listen on ")[1].split(". ")[0]
        assert ask(f"{url}/mode", {"order": 7, "mode": "permanent"})[0] == 200
        assert ask(f"{url}/charge", {"order": 7, "token": "a"}) == (422, "we will not charge for order 7")
        server.send(signal.SIGINT)
        assert server.wait() == 0
    finally:
        server.kill()
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/mode", {"order": 7, "mode": "sleep"}, 400, "mode is one of work, transient"),
        ("/mode", {"mode": "hang"}, 400, "order"),
        ("/charge", [], 400, "no request"),
        ("/pay", {}, 404, "there is no /pay"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_the_services(
    remote: Remote, path: str, body: object, status: int, says: str
) -> None:
    answered, error = ask(f"{remote.url}{path}", body)
    assert (answered, says in error) == (status, True), error


def ask(url: str, body: object) -> tuple[int, str]:
    """The status, and the error if there is one."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, json.dumps(body).encode()), timeout=10
        ) as answer:
            return answer.status, ""
    except HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


@pytest.mark.parametrize("url", ["sqlite:///orders.db", "memory://", "mysql://localhost/shop"])
def test_a_store_that_the_shop_cannot_open_itself_is_refused_with_advice(url: str) -> None:
    said = orders("--store", url, "table")
    assert said.code == 2
    assert "sqlite:///orders.db?driver=sqlite3" in said.err


def test_a_port_that_is_taken_is_told(remote: Remote) -> None:
    said = orders("serve", "--port", remote.url.rpartition(":")[2])
    assert (said.code, "Give another --port" in said.err) == (1, True)


def test_an_order_that_cannot_be_is_refused() -> None:
    for wrong in (["submit", "0"], ["submit", "7", "--mode", "sleep"], ["submit", "7", "--service", "pack"]):
        assert orders(*wrong).code == 2


def test_the_workflow_stands_in_the_page_as_it_stands_in_the_example() -> None:
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "orders.md").read_text(), flags=re.DOTALL)
    assert (ROOT / "examples" / "orders" / "scheduler.py").read_text().endswith(code)
