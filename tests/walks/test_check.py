"""`lateshift check`: whether a release can run what the one before it has left in the store."""

from pathlib import Path
from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.app import check as checking
from lateshift.model.job import Lane, Line
from lateshift.model.scheduling.plan import Plan
from lateshift.model.scheduling.schedule import NewSchedule
from lateshift.model.scheduling.timing import Timing
from lateshift.model.triggering.trigger import NewTrigger
from tests.store_contract.driving import HOUR, Worker, added, make_job, serve
from tests.walks.burying import bury, named
from tests.walks.commands import Cli

RELEASE = """
from enum import Enum
from lateshift import Lateshift
app = Lateshift("shop")

class Box(Enum):
    SMALL = "small"

@app.task
async def pack(order: int, box: Box = Box.SMALL) -> None: ...
"""


@pytest.fixture
def release(tmp_path: Path) -> str:
    (tmp_path / "release.py").write_text(RELEASE)
    return "release.py"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test imports its own release."""
    import sys

    monkeypatch.delitem(sys.modules, "release", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])


def test_an_empty_store_is_fine(cli: Cli, app: Lateshift, release: str) -> None:
    _ = app.store
    said = cli("check", release)
    assert (said.code, said.out) == (0, "This code can run all it would meet: 0 jobs looked at.\n")
    assert cli("check", release, "--json").document["findings"] == []


def test_what_this_code_can_run_is_no_finding(cli: Cli, app: Lateshift, release: str) -> None:
    bury(app, b'{"order":1}')
    added(app.store, make_job(task="pack", payload=b'{"order":1}'))
    added(app.store, make_job(task="pack", payload=b'{"order":1,"box":"small"}', delay=HOUR))

    said = cli("check", release)
    assert said.code == 0
    assert "3 jobs looked at (1 scheduled, 1 ready, 1 dead)" in said.out


def test_gone_tasks_and_arguments_that_do_not_fit_are_found_in_every_state(
    cli: Cli, app: Lateshift, release: str
) -> None:
    old = [make_job(task="ship", payload=b"{}"), make_job(task="pack", payload=b'{"order":"seven"}')]
    dead = bury(app, b'{"order":"six"}', b'{"number":1}')
    running = added(app.store, *old)
    Worker(app.store).lease(2)
    later = added(app.store, *[make_job(task="ship", payload=b"{}", delay=HOUR) for _ in range(5)])

    said = cli("check", release, "--json")

    assert said.code == 1
    assert said.document["looked_at"] == {"scheduled": 5, "running": 2, "dead": 2}
    found = {(each["task"], each["kind"], each["error"]): each for each in said.document["findings"]}
    gone = found["ship", "task_gone", "this code has no task of that name"]
    assert gone["jobs"] == {"scheduled": 5, "running": 1}
    assert gone["examples"] == named(later[:1:-1])
    wrong = found["pack", "arguments_undecodable", "argument 'order': expected `int`, got `str`."]
    assert wrong["jobs"] == {"running": 1, "dead": 1}
    assert wrong["examples"] == named([running[1], dead[0]])
    assert len(found) == 3


def test_what_a_batch_will_enqueue_is_looked_at_as_well(cli: Cli, app: Lateshift, release: str) -> None:
    @app.task
    def pack(order: int) -> None: ...

    @app.task
    def tell(batch: str) -> None: ...

    app.batch([pack.call(3)], then=tell.call("all packed")).cancel(by="ana")
    app.batch([pack.call(1)], then=tell.call("all packed"), on_failure=pack.call(2))

    said = cli("check", release, "--json").document

    assert said["looked_at"] == {"ready": 1, "to come": 2}
    [finding] = said["findings"]
    assert (finding["task"], finding["kind"], finding["jobs"]) == ("tell", "task_gone", {"to come": 1})
    worker = Worker(app.store)
    worker.settle_all(worker.lease(1, Line("default", Lane.THREAD)))
    assert cli("check", release, "--json").document["looked_at"] == {"ready": 1}


def test_what_a_schedule_will_enqueue_is_looked_at_unless_this_code_declares_it(
    cli: Cli, app: Lateshift, release: str
) -> None:
    plan = Plan(timing=Timing(every=HOUR))
    gone = NewSchedule(name="nightly", plan=plan, job=make_job(task="gone", payload=b"{}"))
    own = NewSchedule(name="own", plan=plan, job=make_job(task="gone", payload=b"{}"))
    app.store.schedules.add(gone, by="ana")
    app.store.schedules.declare([own], app="shop")

    said = cli("check", release, "--json")
    assert said.code == 1
    [finding] = said.document["findings"]
    assert (finding["task"], finding["examples"]) == ("gone", ["schedule nightly"])
    assert "schedule nightly" in cli("check", release).out


def test_people_get_a_table_and_what_to_do(cli: Cli, app: Lateshift, release: str) -> None:
    [gone] = added(app.store, make_job(task="ship", payload=b"{}", delay=HOUR))
    bury(app, b'{"order":"six"}')

    said = cli("check", release)

    assert said.code == 1
    assert f"…{str(gone)[-6:]}" in said.out
    assert "gone: this code has no task of that name" in said.out
    assert "argument 'order': expected `int`, got `str`" in said.out
    assert "keep one of that name until its jobs have ended" in said.out
    assert "give a new parameter a default" in said.out


def test_a_finding_speaks_of_arguments_not_of_objects(cli: Cli, app: Lateshift, release: str) -> None:
    bury(app, b"{}", b'{"order":1,"crate":2}', b'{"order":')

    found = {each["error"] for each in cli("check", release, "--json").document["findings"]}
    assert found == {
        "lacks 'order'. It takes (order, box).",
        "got an unknown argument 'crate'. It takes (order, box).",
        "the arguments as a whole: this is no JSON: it ends too early.",
    }


def test_values_do_not_make_two_findings_of_one(cli: Cli, app: Lateshift, release: str) -> None:
    bury(app, *[b'{"order":1,"box":"size %d"}' % number for number in range(9)])

    [finding] = cli("check", release, "--json").document["findings"]
    assert finding["jobs"] == {"dead": 9}
    assert finding["error"].endswith("' is none of small.")


def test_what_has_completed_or_was_cancelled_does_not_count(cli: Cli, app: Lateshift, release: str) -> None:
    ids = added(app.store, *[make_job(task="ship", payload=b"{}") for _ in range(2)])
    app.store.jobs.cancel(ids[:1], by="ana")
    worker = Worker(app.store)
    worker.settle(worker.lease_one())

    assert cli("check", release, "--json").document["looked_at"] == {}


def test_more_jobs_than_a_page_are_all_looked_at(app: Lateshift, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "PAGE", 3)
    bury(app, *[b"{}"] * 4)
    added(app.store, *[make_job(task="pack") for _ in range(7)])

    assert app.check().looked_at == {"ready": 7, "dead": 4}


def test_findings_are_bounded_and_the_rest_is_counted(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "FINDINGS_KEPT", 2)
    added(app.store, *[make_job(task=f"old-{number % 4}") for number in range(8)])

    report = app.check()
    assert (len(report.findings), report.left_out) == (2, 4)


def test_a_type_of_the_users_own_that_raises_is_a_finding(app: Lateshift) -> None:
    class Strange:
        @classmethod
        def model_validate(cls, value: Any) -> "Strange":
            raise LookupError("no such thing")

    async def pack(order: Strange) -> None: ...

    app.task(pack)
    bury(app, b'{"order":1}')

    [finding] = app.check().findings
    assert finding.kind == "arguments_undecodable"
    assert "no such thing" in finding.error


def test_a_task_that_cannot_be_used_is_found_without_a_job(app: Lateshift) -> None:
    async def pack(order: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    app.task(pack)

    [finding] = app.check().findings
    assert (finding.task, finding.kind, finding.counts) == ("pack", "task_invalid", {})


def test_a_program_that_cannot_be_imported_is_exit_code_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "release.py").write_text("import nowhere_to_be_found")
    assert cli("check", "release.py").code == 2
    assert cli("check", "nothing.py").code == 2


def test_a_misspelt_store_is_not_an_empty_one(cli: Cli, release: str, tmp_path: Path) -> None:
    said = cli("check", release, "--store", f"sqlite:///{tmp_path}/misspelt.db")
    assert said.code == 3
    assert "There is no store" in said.err
    assert not (tmp_path / "misspelt.db").exists()


def test_the_store_of_the_command_line_comes_before_the_programs_own(
    cli: Cli, app: Lateshift, store_url: str, tmp_path: Path
) -> None:
    (tmp_path / "release.py").write_text(
        RELEASE.replace('"shop"', f'"shop", store="sqlite:///{tmp_path}/own.db"')
    )
    bury(app, b"{}", task="gone")
    assert cli("store", "migrate", "--store", f"sqlite:///{tmp_path}/own.db").code == 0

    assert cli("check", "release.py", "--store", store_url).code == 1
    assert cli("check", "release.py").code == 0


# -- triggers -----------------------------------------------------------------------------------------------------

TRIGGERS = """
from lateshift import Lateshift, Message
app = Lateshift("shop")

@app.on_file("inbox/*.csv")
def load(path: str) -> None: ...

@app.on_message("amqp://host//", "orders")
def place(order: dict[str, int]) -> None: ...

@app.on_row("sqlite:///crm.db", table="customer", cursor="id")
def sync(customer: dict[str, str]) -> None: ...

@app.on("order.*")
def tell(order: dict[str, int]) -> None: ...
"""


def released(tmp_path: Path, text: str) -> str:
    (tmp_path / "release.py").write_text(text)
    return "release.py"


def test_triggers_that_can_be_read_are_no_finding(cli: Cli, app: Lateshift, tmp_path: Path) -> None:
    said = cli("check", released(tmp_path, TRIGGERS), "--json")
    assert (said.code, said.document["findings"], said.document["triggers_going"]) == (0, [], [])


def test_triggers_that_would_make_no_jobs_are_found(cli: Cli, app: Lateshift, tmp_path: Path) -> None:
    wrong = TRIGGERS.replace("path: str", "path: Message").replace("sqlite:///crm", "nosuchbase:///crm")
    said = cli("check", released(tmp_path, wrong), "--json")
    assert said.code == 1
    found = {each["examples"][0]: (each["kind"], each["error"]) for each in said.document["findings"]}
    assert found.keys() == {"trigger load", "trigger sync"}
    assert found["trigger load"][0] == found["trigger sync"][0] == "trigger_invalid"
    assert "annotated Message" in found["trigger load"][1]
    assert "SQLAlchemy" in found["trigger sync"][1]
    said = cli("check", "release.py")
    assert "trigger load" in said.out
    assert "A trigger that would make no jobs" in said.out


def test_a_trigger_whose_library_is_not_installed_is_found(
    cli: Cli, app: Lateshift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lateshift.triggers.fitting.find_spec", lambda module: None)
    text = TRIGGERS.replace("amqp://host//", "redis://host")
    [finding] = cli("check", released(tmp_path, text), "--json").document["findings"]
    assert (
        finding["error"]
        == "redis is not installed, which this trigger needs: pip install 'lateshift[brokers]'"
    )


def test_a_trigger_that_the_database_is_to_write_is_found_where_it_cannot(
    cli: Cli, app: Lateshift, tmp_path: Path, store_url: str
) -> None:
    text = TRIGGERS.replace('"sqlite:///crm.db",', f'"{store_url}", by="database",')
    said = cli("check", released(tmp_path, text), "--json")
    if store_url.startswith("sqlite"):
        [finding] = said.document["findings"]
        assert "needs a store in PostgreSQL" in finding["error"]
    else:
        assert said.code == 0


def test_triggers_that_this_code_does_not_have_any_more_are_listed_and_are_no_finding(
    cli: Cli, app: Lateshift, tmp_path: Path
) -> None:
    old = NewTrigger(name="old", kind="file", about="old/*", task="load")
    app.store.triggers.declare([old], app="shop")
    app.store.triggers.declare([NewTrigger(name="theirs", kind="file", about="x", task="x")], app="post")
    said = cli("check", released(tmp_path, TRIGGERS))
    assert said.code == 0
    assert "The trigger old is in the store, and this code does not have it" in said.out
    assert "For 30 days it is known how far it had read" in said.out
    assert cli("check", "release.py", "--json").document["triggers_going"] == ["old"]


def test_a_trigger_whose_name_another_app_has_is_found_while_that_app_has_workers(
    cli: Cli, app: Lateshift, tmp_path: Path
) -> None:
    store = app.store
    store.triggers.declare([NewTrigger(name="load", kind="file", about="x", task="x")], app="billing")
    assert cli("check", released(tmp_path, TRIGGERS)).code == 0
    worker = Worker(store)
    serve(store, worker, "billing")
    said = cli("check", "release.py", "--json")
    assert said.code == 1
    [finding] = said.document["findings"]
    assert (finding["kind"], finding["examples"]) == ("trigger_taken", ["trigger load"])
    assert "the app billing has a trigger of this name" in finding["error"]
