"""Keys are rotated while everything runs, and whoever does it is killed in the middle."""

import os
import re
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from lateshift import Lateshift
from lateshift.errors import SealKeyMissing
from lateshift.runtime.aside import aside
from lateshift.sealing.renewing import count, renew
from lateshift.testing import testing
from tests.sealing.clinic import DIGEST, NEW, OLD, SECRETS, clinic
from tests.walks.commands import Cli, command, environment

SOON = timedelta(seconds=30)
MANY = 900


@pytest.mark.anyio
async def test_everything_that_a_job_leaves_behind_is_sealed_anew(store_url: str, app: Lateshift) -> None:
    examine, fail, remember = (app.tasks[name] for name in ("examine", "fail", "remember"))
    async with app.running():
        done = await examine.aenqueue("Ada")
        await done.aresult(SOON)
        dead = await fail.aenqueue("Ada")
        state = await remember.options(session="ward").aenqueue("Ada")
        await state.aresult(SOON)
        while not (await dead.aview()).state.settled:
            await aside(lambda: None)
    waiting = examine.options(delay=timedelta(hours=1)).enqueue("Bea")
    batch = app.batch([examine.options(delay=timedelta(hours=1)).call("Cleo")], then=examine.call("Dora"))
    assert set(count(app.store)) == {"2026-10"}

    both = clinic(store_url, NEW, OLD, DIGEST)
    renewed = renew(both.store, both.ring())
    assert (renewed.unreadable, set(renewed.by_key)) == (0, {"2026-11"})
    assert renew(both.store, both.ring()).rows == 0  # what is done is passed over
    both.close()

    with testing(clinic(store_url, NEW, DIGEST), store=store_url) as kit:
        later = kit.app
        assert later.job(done.id).result() == SECRETS["result"]
        assert SECRETS["error"] in (
            later.client.readable(later.job(dead.id).view()).history[-1].message or ""
        )
        assert [line.message for log in later.job(done.id).logs() for line in log.lines] == [
            f"looking at {SECRETS['log']}"
        ]
        again = later.tasks["remember"].options(session="ward").enqueue("Ada")
        await kit.atravel(hours=2)
        assert kit.result(again) == SECRETS["state"]
        assert kit.result(later.job(waiting.id)) == SECRETS["result"]
        assert later.find_batch(batch.id).progress().finished_at is not None
        assert "Dora" in later.ran  # type: ignore[attr-defined]


def test_without_a_key_nothing_is_rotated(app: Lateshift) -> None:
    with pytest.raises(SealKeyMissing, match="LATESHIFT_KEYS"):
        renew(app.store, clinic("memory://").ring())


@pytest.mark.anyio
async def test_rotation_under_load_is_killed_again_and_again_and_loses_nothing(
    store_url: str, app: Lateshift, tmp_path: Path
) -> None:
    examine = app.tasks["examine"]
    app.enqueue_many(
        examine.options(delay=timedelta(hours=1)).call(f"waits {number}") for number in range(MANY)
    )
    both = clinic(store_url, OLD, NEW, DIGEST)  # workers have the new key before anybody seals with it
    newest = clinic(store_url, NEW, OLD, DIGEST)
    ring = f"{NEW},{OLD},{DIGEST}"

    def rotate(crash: str = "") -> int:
        more = {"LATESHIFT_CRASH": crash} if crash else {}
        variables = environment(LATESHIFT_STORE=store_url, LATESHIFT_KEYS=ring, **more)
        done = subprocess.run(
            command("keys", "reencrypt"),
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode

    sent = []
    async with both.running():
        for kill in range(1, 5):
            sent += [
                await app_.tasks["examine"].aenqueue(f"runs {kill}")
                for app_ in (app, newest)
                for _ in range(20)
            ]
            assert await aside(rotate, f"keys.after_page:{kill + 1}") == -signal.SIGKILL
            assert (await aside(count, both.store)).keys() == {"2026-10", "2026-11"}
        for job in sent:
            assert await newest.job(job.id).aresult(SOON) == SECRETS["result"]
    assert await aside(rotate) == os.EX_OK
    assert (await aside(count, both.store)).keys() == {"2026-11"}
    both.close()
    newest.close()

    last = clinic(store_url, NEW, DIGEST)
    with testing(last, store=store_url) as kit:
        await kit.atravel(hours=2)
        assert kit.dead_letters() == []
    assert sorted(last.ran) == sorted(f"waits {number}" for number in range(MANY))  # type: ignore[attr-defined]
    last.close()


def test_the_commands_make_list_and_rotate_keys(
    store_url: str, app: Lateshift, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.tasks["examine"].enqueue("Ada")
    key = cli("keys", "new", "2026-12").out.strip()
    assert key.startswith("2026-12:")
    monkeypatch.setenv("LATESHIFT_KEYS", f"{key},{OLD},{DIGEST}")
    assert cli("keys", "list", "--json").document == {
        "keys": [
            {"id": "2026-12", "in_ring": True, "seals": True, "sealed": 0},
            {"id": "2026-10", "in_ring": True, "seals": False, "sealed": 1},
            {"id": "digest", "in_ring": True, "seals": False, "sealed": 0},
        ]
    }
    assert cli("keys", "new", "2026-12").code == 2
    dated = {cli("keys", "new").out.partition(":")[0] for _ in range(3)}
    assert len(dated) == 3, "keys of one day are told apart by their ids"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d-[0-9a-f]{6}", id) for id in dated)
    assert cli("keys", "new", "digest").code == 2
    said = cli("keys", "reencrypt")
    assert (said.code, "1 row sealed anew with 2026-12" in said.out) == (0, True)
    assert cli("keys", "reencrypt", "--json").document == {
        "renewed": 0, "unreadable": 0, "left": {}, "may_go": ["2026-10"],
    }  # fmt: skip
    assert [
        it["subject"] for it in cli("audit", "list", "--action", "reencrypt", "--json").document["audit"]
    ] == ["keys to 2026-12"] * 2
    assert all(OLD.split(":")[1] not in text for text in (said.out, cli("keys", "list").out))

    monkeypatch.setenv("LATESHIFT_KEYS", f"{NEW},{DIGEST}")
    said = cli("keys", "reencrypt")
    assert (said.code, "still sealed with 2026-12: keep that key" in said.out) == (1, True)
    monkeypatch.delenv("LATESHIFT_KEYS")
    assert "no key to seal with" in cli("keys", "reencrypt").err


def test_what_may_go_is_named_and_digest_is_never_among_it(
    app: Lateshift, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.tasks["examine"].enqueue("Ada")
    monkeypatch.setenv("LATESHIFT_KEYS", f"{OLD},{DIGEST}")
    said = cli("keys", "reencrypt").out
    assert "No key may go from this ring." in said
    assert "digest stays" in said

    other = cli("keys", "new", "2026-09").out.strip()
    monkeypatch.setenv("LATESHIFT_KEYS", f"{NEW},{OLD},{other},{DIGEST}")
    said = cli("keys", "reencrypt").out
    assert "2026-10 and 2026-09 may go" in said
    assert "digest stays" in said
