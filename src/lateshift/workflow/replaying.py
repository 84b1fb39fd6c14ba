"""Whether code fits what a run has recorded: it is run over the stored results as far as they go, and nothing else happens."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lateshift.model.workflow.run import Advance, Advanced, Loaded
from lateshift.workflow.control import Diverged
from lateshift.workflow.workflow import Workflow

PATIENCE = (
    10.0  # seconds for one run: code between steps takes no time, unless it waits for something of its own
)


class Dry:
    """A journal that reads what it was given and writes nothing; whatever wants to wait is asleep."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    async def advance(self, one: Advance) -> Advanced:
        return Advanced(self._loaded.now, asleep=one.sleep is not None, news=self._loaded.run.news)

    async def load(self, id: object) -> Loaded:
        return self._loaded

    async def cancel(self, ids: Sequence[object], by: str) -> None: ...


def difference(workflow: Workflow[..., Any], loaded: Loaded, payload: bytes) -> str | None:
    """The first one, in words; None if the code fits. Blocking; on a thread of its own, for the caller may have a loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _difference(workflow, loaded, payload)).result()


async def _difference(workflow: Workflow[..., Any], loaded: Loaded, payload: bytes) -> str | None:
    try:
        async with asyncio.timeout(PATIENCE):
            await workflow.look(loaded, payload, Dry(loaded))
    except Diverged as found:
        return str(found)
    except TimeoutError:
        return f"between its steps the code waits for something of its own: it was not done within {PATIENCE:g} s"
    return None
