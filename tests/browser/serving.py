"""A real server of a store that was filled, with a real worker beside it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lateshift.model.job import JobFilter, State
from lateshift.model.workflow.run import Phase
from lateshift.store.open import open_store
from tests.walks.commands import environment, eventually, started

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(__file__).parent / "program.py")


@dataclass(frozen=True, slots=True)
class Served:
    """Where a server is, and the link that it printed."""

    url: str
    link: str
    store: str


@contextmanager
def serving(store: str, folder: Path, *, text: str | None = None) -> Iterator[Served]:
    """`text`: what users wrote into everything; None leaves the store empty."""
    variables = {
        "LATESHIFT_STORE": store,
        "TEXT_OF_USERS": text or "",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    with ExitStack() as stack:
        if text is not None:
            subprocess.run(
                [sys.executable, "-c", "from tests.browser.program import fill; fill()"],
                check=True, timeout=60, env=environment(**variables), cwd=folder,
            )  # fmt: skip
            (folder / "worker").mkdir()
            stack.enter_context(started("up", PROGRAM, cwd=folder / "worker", **variables))
            eventually(lambda: _is_full(store), "the store is as a page wants it")
        server = stack.enter_context(started("serve", PROGRAM, "--port", "0", cwd=folder, **variables))
        out = folder / "output"
        eventually(lambda: "/sign-in?code=" in out.read_text() or server.poll() is not None, "it serves")
        [link] = re.findall(r"http://\S+/sign-in\?code=[\w-]+", out.read_text())
        yield Served(link.partition("/sign-in")[0], link, store)


def _is_full(url: str) -> bool:
    """Every job has come to where it stays."""
    store = open_store(url)
    try:
        dead = store.reports.jobs(JobFilter(state=State.DEAD), 10)
        done = store.reports.jobs(JobFilter(state=State.COMPLETED, task="keep"), 10)
        held = store.workflows.newest(None, 10, phase=Phase.HELD)
        return len(dead) >= 4 and bool(done) and bool(held)
    finally:
        store.close()
