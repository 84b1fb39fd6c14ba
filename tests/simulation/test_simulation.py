"""A slice of the simulation: months of schedules, eight schedulers that die, pause and lead all at once."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift.clock import ManualClock, StillClock
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.simulation.simulate import SCHEDULERS, Simulation, start_of, wrong


@pytest.fixture
def clock(store_url: str) -> ManualClock:
    return StillClock() if store_url.startswith("sqlite") else ManualClock()


@pytest.fixture
def stores(store_url: str, clock: ManualClock) -> Iterator[list[Store]]:
    opened = [open_store(store_url, clock) for _ in range(SCHEDULERS)]
    for store in opened:
        store.ready()
    yield opened
    for store in opened:
        store.close()


def test_over_months_of_deaths_pauses_and_jumps_every_tick_is_decided_once(
    stores: list[Store], clock: ManualClock
) -> None:
    begin = start_of(clock, 2026)
    simulation = Simulation(stores, clock, seed=7, schedules=80, begin=begin)
    found = simulation.run(begin + timedelta(days=90))
    assert found["ticks decided"] > 2_000
    assert wrong(found) == {}
    assert len(simulation.faults.happened) == 4
