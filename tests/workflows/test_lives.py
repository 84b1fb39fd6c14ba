"""Row 81 of the catalogue, for what is too large to be exhaustive: made-up workflows of 6 steps and more, killed at writes that chance chooses.

The same lives in every run; LATESHIFT_EXAMPLES=1000 goes looking for new ones, and so does `make lives`."""

import os
import time
from uuid import uuid4

from lateshift.testing.kit import Kit
from tests.workflows.lives import World, live
from tests.workflows.programs import LEAST

IN_MEMORY, ON_A_STORE = 25, 8


def lives(url: str, usual: int) -> list[int]:
    """How often each of them was killed."""
    wanted = int(os.environ.get("LATESHIFT_EXAMPLES", "0"))
    first = time.time_ns() // 1000 % 10**9 if wanted else 0
    world = World(url)
    with Kit(world.app, store=url, around=world.fate) as kit:
        lived = [live(world, kit, seed) for seed in range(first, first + (wanted or usual))]
    assert all(len(life.program.nodes) >= LEAST for life in lived)
    assert {life.program.end for life in lived} == {"well", "fails", "cancelled"}
    return [life.kills for life in lived]


def test_whatever_is_killed_the_ledger_of_a_made_up_workflow_is_the_oracles() -> None:
    kills = lives(f"memory://{uuid4().hex}", IN_MEMORY)
    assert max(kills) > 3, "nothing was killed several times"


def test_it_is_so_on_every_store(store_url: str) -> None:
    assert sum(lives(store_url, ON_A_STORE)) > ON_A_STORE
