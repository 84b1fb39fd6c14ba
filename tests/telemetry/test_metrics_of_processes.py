"""What a scraper learns of workers in processes of their own: from `lateshift serve` beside `lateshift work`, and from `lateshift metrics`."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from msgspec import structs

from lateshift import Lateshift
from lateshift.documents.members import member_document
from lateshift.model.ids import new_member_id
from lateshift.model.member import MemberView
from lateshift.telemetry import of_members
from lateshift.telemetry.measures import BUCKETS, Histogram
from lateshift.telemetry.metrics import exposition
from lateshift.testing import Kit
from lateshift.worker.service import introduce
from tests.telemetry.reading import of, read
from tests.walks.commands import completed, eventually, interrupted, started
from tests.walks.waiting import until

PROGRAM = """
import time

from lateshift import Lateshift

app = Lateshift("shop")


@app.task(queue="images")
def thumbnail(path: str) -> str:
    return path


@app.task(queue="images")
async def blocks(seconds: float) -> None:
    time.sleep(seconds)
"""
LOOPS = {"Worker", "Control", "Telling"}
HOSTS = {"Sweep", "Ticker", "Courier", "Heartbeat"}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Of the server and of the workers: each writes its output into its own."""
    for name in ("serve", "work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.py").write_text(PROGRAM)
    return tmp_path / "serve", tmp_path / "work"


def test_leases_settlements_and_the_loops_of_workers_and_hosts_reach_a_scraper_of_serve(
    folders: tuple[Path, Path], store_url: str
) -> None:
    server, workers = folders
    settings = {"LATESHIFT_STORE": store_url, "LATESHIFT_HEARTBEAT": "3"}
    completed("store", "migrate", cwd=server, LATESHIFT_STORE=store_url)
    scopes = ("--scope", "read", "--scope", "enqueue")
    [token] = re.findall(
        r"lsh_[\w-]{64}",
        completed("tokens", "create", "all", *scopes, cwd=server, LATESHIFT_STORE=store_url).out,
    )
    with (
        started("serve", "shop.py", "--port", "0", cwd=server, **settings) as serving,
        started("work", "shop.py", "--processes", "2", cwd=workers, **settings) as working,
    ):
        eventually(lambda: "http://127.0.0.1" in said(server) or serving.poll() is not None, "it serves")
        url = re.findall(r"http://127\.0\.0\.1:\d+", said(server))[0]
        with httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=30
        ) as client:
            for number in range(20):
                client.post("/v1/tasks/thumbnail/jobs", json={"arguments": {"path": str(number)}})

            def metrics() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
                return read(client.get("/metrics").text)

            eventually(lambda: all_told(metrics()), "all is told")
            found = metrics()
            assert labels(found, "lateshift_member_info", "kind") == {"host", "worker"}
            assert {value for (name, _), value in found.items() if name == "lateshift_member_loop_late"} == {
                0
            }
            told = completed("metrics", cwd=server, LATESHIFT_STORE=store_url).out
            assert loops(read(told)) >= LOOPS | HOSTS
            assert settled(read(told)) > 0

            client.post("/v1/tasks/blocks/jobs", json={"arguments": {"seconds": 25}})
            eventually(
                lambda: late(metrics()) >= {"Worker", "Control"},
                "a worker whose event loop is blocked is told of",
            )
        assert interrupted(serving, 30) == 0
        working.terminate()
        assert working.wait(60) == 0
    left = completed("members", "list", "--json", cwd=server, LATESHIFT_STORE=store_url).document["members"]
    assert [member["kind"] for member in left if member["kind"] == "host"] == []


Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def said(folder: Path) -> str:
    return (folder / "output").read_text()


def labels(found: Found, metric: str, label: str) -> set[str]:
    return {dict(labels)[label] for name, labels in found if name == metric}


def loops(found: Found) -> set[str]:
    return labels(found, "lateshift_member_loop_age_seconds", "loop")


def late(found: Found) -> set[str]:
    return {
        dict(labels)["loop"]
        for (name, labels), value in found.items()
        if name == "lateshift_member_loop_late" and value
    }


def all_told(found: Found) -> bool:
    """Of two workers and their host."""
    told = len(labels(found, "lateshift_member_loop_age_seconds", "member"))
    return told == 3 and loops(found) >= LOOPS | HOSTS and settled(found) > 0


def settled(found: Found) -> float:
    counts = ("lateshift_member_lease_seconds_count", "lateshift_member_settle_seconds_count")
    return min(sum(value for (name, _), value in found.items() if name == wanted) for wanted in counts)


# -- one member after the other ----------------------------------------------------------------------------------------


def joined(kit: Kit) -> MemberView:
    view = introduce(new_member_id(), "worker", "worker 1", kit.clock)
    kit.app.store.members.join(view, kit.app.settings.heartbeat)
    return view


def test_a_histogram_is_as_the_member_told_it(app: Lateshift, kit: Kit) -> None:
    member, histogram = joined(kit), Histogram()
    for seconds in (0.0004, 0.003, 0.003, 100):
        histogram.observe(seconds)
    app.store.members.report(member.id, {"lease": histogram.told(), "settle": Histogram().told()})

    found = read(exposition(app.store))

    name, who = "lateshift_member_lease_seconds", str(member.id)
    assert of(found, f"{name}_bucket", member=who, le="0.001") == 1
    assert of(found, f"{name}_bucket", member=who, le="0.005") == 3
    assert of(found, f"{name}_bucket", member=who, le="+Inf") == 4
    assert of(found, f"{name}_count", member=who) == 4
    assert of(found, f"{name}_sum", member=who) == pytest.approx(100.0064)
    assert "lateshift_member_settle_seconds" not in exposition(app.store)  # nothing was observed


@pytest.mark.parametrize(
    "told",
    [None, "x", [], [1.0], [1.0, [1, 2]], ["x"] * (len(BUCKETS) + 2), [[1]] * (len(BUCKETS) + 2), {"a": 1}],
)
def test_what_a_member_of_another_release_tells_breaks_nothing(
    app: Lateshift, kit: Kit, told: object
) -> None:
    app.store.members.report(joined(kit).id, {"lease": told, "settle": told})

    assert "lateshift_member_lease_seconds" not in exposition(app.store)


def test_of_many_members_the_first_are_told_of_in_histograms_each_whole(
    app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_members, "MEMBERS_TIMED", 2)
    histogram = Histogram()
    histogram.observe(0.1)
    members = [joined(kit) for _ in range(3)]
    for member in members:
        app.store.members.report(member.id, {"lease": histogram.told(), "settle": histogram.told()})

    found = read(exposition(app.store))

    first = {
        str(member.id)
        for member in sorted(app.store.reports.members(), key=lambda it: (it.started_at, it.id))[:2]
    }
    assert labels(found, "lateshift_member_lease_seconds_count", "member") == first
    assert labels(found, "lateshift_member_settle_seconds_bucket", "member") == first


def test_a_loop_that_is_older_than_three_intervals_is_late_and_the_page_of_members_says_so(
    app: Lateshift, kit: Kit
) -> None:
    member = joined(kit)
    told = {"Worker": (16.0, 1.0), "Control": (14.0, 0.25), "Ticker": (100.0, 60.0)}
    app.store.members.beat([member.id], app.settings.heartbeat, {member.id: told})

    found = read(exposition(app.store))
    [view] = app.store.reports.members()

    assert late(found) == {"Worker"}
    assert of(found, "lateshift_member_loop_age_seconds", member=str(member.id), loop="Ticker") == 100
    assert of(found, "lateshift_member_loop_interval_seconds", member=str(member.id), loop="Ticker") == 60
    assert member_document(view).stats == {"late_loops": {"Worker": 16}}
    assert member_document(structs.replace(view, stats={"lease": [0, []], "running": 1}, loops={})).stats == {
        "running": 1
    }


@pytest.mark.anyio
async def test_a_worker_in_a_program_of_its_own_tells_of_all_loops_of_its_process(app: Lateshift) -> None:
    app.settings = replace(app.settings, heartbeat=timedelta(seconds=1))
    async with app.running():
        [member] = await until(
            lambda: asyncio.to_thread(app.store.reports.members), lambda seen: any(it.loops for it in seen)
        )
        assert {"Worker", "Control", "Sweep", "Heartbeat"} <= set(member.loops)
    app.close()
