"""`lateshift serve` is killed at any moment while many clients ask, each with a key of its own; then all of them ask again."""

import asyncio
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.crash.asking import FIRE, NAME, PATIENCE, Caller, address, counted, prepare
from tests.crash.checker import query
from tests.crash.scene import Group, Scene

ROUNDS = int(os.environ.get("LATESHIFT_TEST_KILLS", "10"))  # each ends with a kill
ASKED = 60  # requests in a round, half of them for a job, half of them to fire a schedule
AT_ONCE = 12

START = "/v1/tasks/quick_sync/jobs"


@dataclass
class Round:
    """Requests by their keys, and who was answered with which job."""

    caller: Caller
    number: int
    jobs: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)  # with 409: it may have been done

    @property
    def keys(self) -> list[str]:
        return [f"{self.number}-{n}" for n in range(ASKED)]

    def starts(self, key: str) -> bool:
        return int(key.partition("-")[2]) % 2 == 0

    async def ask_all(self, server: Group, *, kill_after: int | None = None) -> int:
        """A dozen at a time. Once so many were answered, the server is killed; gives how many heard nothing."""
        limits = httpx.Limits(max_connections=AT_ONCE)
        answered = 0

        async def ask(client: httpx.AsyncClient, key: str) -> bool:
            nonlocal answered
            try:
                answer = await client.post(
                    START if self.starts(key) else FIRE.path,
                    json=self.body(key),
                    headers={"Idempotency-Key": key},
                )
            except httpx.TransportError:
                return False
            answered += 1
            if answered == kill_after:
                server.kill()
            self.hear(key, answer)
            return True

        async with httpx.AsyncClient(
            base_url=address(server),
            headers=self.caller.headers,
            trust_env=False,
            timeout=PATIENCE,
            limits=limits,
        ) as client:
            heard = await asyncio.gather(*[ask(client, key) for key in self.keys])
        return heard.count(False)

    def body(self, key: str) -> dict[str, Any] | None:
        number = self.number * ASKED + int(key.partition("-")[2])
        return {"arguments": {"number": number}} if self.starts(key) else None

    def hear(self, key: str, answer: httpx.Response) -> None:
        """Whoever was told of a job once is told of the same one ever after."""
        if answer.status_code == 409 and not self.starts(key):
            assert key not in self.jobs, answer.text
            self.refused.append(key)
            return
        assert answer.status_code == (202 if self.starts(key) else 200), answer.text
        told = answer.json()
        job = str(told["id"] if self.starts(key) else told["job"]).replace("-", "")
        assert self.jobs.setdefault(key, job) == job


@pytest.mark.slow
@pytest.mark.timeout(60 + 6 * ROUNDS)
def test_each_key_is_one_job_whenever_the_server_is_killed(scene: Scene) -> None:
    prepare(scene)
    caller, draw = Caller(scene), random.Random(scene.url[:6])
    server, unheard, unknown, fired = scene.server(), 0, 0, set[str]()
    for number in range(ROUNDS):
        a_round = Round(caller, number)
        unheard += asyncio.run(a_round.ask_all(server, kill_after=draw.randint(1, ASKED - AT_ONCE)))
        assert set(a_round.jobs.values()) <= set(scene.rows())  # what was answered is there
        assert not a_round.refused
        server = scene.server()
        assert asyncio.run(a_round.ask_all(server)) == 0
        fired |= {job for key, job in a_round.jobs.items() if not a_round.starts(key)}
        unknown += len(a_round.refused)
        check(scene, a_round, fired, unknown)
    assert unheard > 0
    print(f"{unheard} of {ROUNDS * ASKED} heard nothing; of {unknown} nobody knows")


def check(scene: Scene, a_round: Round, fired: set[str], unknown: int) -> None:
    """By the tables: jobs that were started by their numbers, those that were fired by their ids, and each in the audit once."""
    here, ours = scene.rows(), started_ids(scene)
    started = [row.payload for row in here.values() if row.job in ours]
    expected = [b'{"number":%d}' % number for number in range(0, (a_round.number + 1) * ASKED, 2)]
    assert Counter(started) == Counter(expected)
    assert len(set(a_round.jobs.values())) == len(a_round.jobs)
    rows = FIRE.shows(scene)
    assert fired <= set(here)
    assert len(fired) <= rows <= len(fired) + unknown
    assert FIRE.audited(scene) == rows
    starts = f"SELECT count(*) FROM {{}}audit WHERE action = 'start' AND actor = 'token {NAME}'"
    assert counted(scene, starts) == len(expected)


def started_ids(scene: Scene) -> set[str]:
    sqlite = "SELECT lower(hex(id)) FROM job WHERE task = 'quick_sync'"
    postgres = "SELECT replace(id::text, '-', '') FROM lateshift.job WHERE task = 'quick_sync'"
    return {id for (id,) in query(scene.url, sqlite, postgres)}
