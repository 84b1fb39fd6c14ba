"""Queues that appear at run time: a worker that serves a pattern finds them by itself, within a second."""

import statistics
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lateshift import Lateshift, State
from lateshift.cli.serving import shared, unmatched
from lateshift.model.ids import new_member_id
from lateshift.model.member import MemberView, Program, Serves
from tests.walks.commands import eventually, interrupted, started

PROGRAM = """
from lateshift import Lateshift
app = Lateshift("gallery")

@app.task(queue="mail")
async def thumbnail(path: str) -> str:
    return path
"""
SOON = timedelta(seconds=30)


@pytest.fixture
def gallery(store_url: str, tmp_path: Path) -> Lateshift:
    (tmp_path / "gallery.py").write_text(PROGRAM)
    return Lateshift("gallery", store=store_url)


def test_a_real_worker_finds_queues_that_appear_at_run_time_within_a_second(
    gallery: Lateshift, tmp_path: Path
) -> None:
    @gallery.task(queue="mail")
    async def thumbnail(path: str) -> str:
        return path

    with started(
        "work", "gallery.py", "--queues", "images.*", cwd=tmp_path, LATESHIFT_STORE=gallery.settings.store
    ) as worker:
        assert thumbnail.options(queue="images.first").enqueue("a").result(SOON) == "a"  # it has begun
        other = thumbnail.enqueue("not for this worker")
        waited = []
        for number in range(5):
            job = thumbnail.options(queue=f"images.user:{number}").enqueue("b")
            assert job.result(SOON) == "b"
            view = job.view()
            assert view.started_at is not None
            waited.append((view.started_at - view.created_at).total_seconds())
        assert statistics.median(waited) < 1, waited  # a machine that is busy may be late once
        assert other.state is State.READY
        assert interrupted(worker, 30) == 0
    gallery.close()


@pytest.mark.anyio
async def test_a_queue_is_found_though_its_hint_was_lost(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def thumbnail(path: str) -> str:
        return path

    app.settings = replace(app.settings, queues=("images.*",))
    monkeypatch.setattr(app.store.wakes, "hint", lambda lines: None)
    async with app.running():
        for number in range(2):
            job = await thumbnail.options(queue=f"images.{number}").aenqueue("c")
            assert await job.aresult(SOON) == "c"
            view = await job.aview()
            assert view.started_at is not None
            assert view.started_at - view.created_at < app.store.poll + timedelta(seconds=2)


def test_a_pattern_that_matches_nothing_says_so_at_the_start_and_is_served_all_the_same(
    gallery: Lateshift, tmp_path: Path
) -> None:
    @gallery.task(queue="mail")
    async def thumbnail(path: str) -> str:
        return path

    thumbnail.options(queue="orders").enqueue("x")
    with started(
        "work", "gallery.py", "--queues", "mial,mail,orders,images.*", cwd=tmp_path,
        LATESHIFT_STORE=gallery.settings.store,
    ) as worker:  # fmt: skip
        eventually(lambda: "images.* matches" in (tmp_path / "output").read_text(), "the warning")
        assert thumbnail.options(queue="mial").enqueue("a").result(SOON) == "a"
        assert interrupted(worker, 30) == 0
    said = (tmp_path / "output").read_text()
    assert "--queues: mial matches no queue yet (there are: mail, orders)" in said
    assert "--queues: images.* matches no queue yet" in said
    assert said.count("matches no queue yet") == 2
    gallery.close()


def test_another_app_on_the_same_queues_is_told_of_at_the_start(gallery: Lateshift) -> None:
    """Its workers would take jobs that they have no task for."""

    @gallery.task(queue="mail")
    async def thumbnail(path: str) -> str:
        return path

    @gallery.task(queue="images.large")
    async def enlarge(path: str) -> str:
        return path

    def joins(app: str, *queues: str) -> None:
        id = new_member_id()
        program = Program(app=app, version="1", tasks={})
        now = gallery.clock.now()
        gallery.store.members.join(
            MemberView(
                id=id, name=app, kind="worker", host="here", pid=1, started_at=now, expires_at=now, dead=False, stats={},
            ),
            timedelta(hours=1),
        )  # fmt: skip
        gallery.store.members.introduce(
            id,
            Serves(app=app, version="1", code=program.digest, queues=queues, slots={}, heartbeat=1),
            program,
        )

    assert shared(gallery) == {}
    joins(gallery.name)
    joins("far", "elsewhere")
    assert shared(gallery) == {}
    joins("shop")
    joins("press", "images.*")
    assert shared(gallery) == {"press": ["images.large"], "shop": ["images.large", "mail"]}
    gallery.settings = replace(gallery.settings, queues=("mail",))
    assert shared(gallery) == {"shop": ["mail"]}
    gallery.close()


def test_names_and_patterns_are_matched_as_workers_do() -> None:
    known = ["mail", "images.large", "Orders"]
    assert unmatched(["mail", "images.*", "*", "m?il"], known) == []
    assert unmatched(["mial", "image", "orders"], known) == ["mial", "image", "orders"]
    assert unmatched(["mail"], []) == ["mail"]
