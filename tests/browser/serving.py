"""A real server of a store that was filled, with a real worker beside it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lateshift.model.job import JobFilter, State
from lateshift.model.workflow.run import Phase
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.walks.commands import environment, eventually, started

ROOT = Path(__file__).parents[2]
PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class Served:
    """Where a server is, and the link that it printed."""

    url: str
    link: str
    store: str


def is_full(store: Store) -> bool:
    """Every job has come to where it stays."""
    dead = store.reports.jobs(JobFilter(state=State.DEAD), 10)
    items = [view for view in store.workflows.newest(None, 20) if view.state is State.COMPLETED]
    held = store.workflows.newest(None, 10, phase=Phase.HELD)
    return len(dead) >= 4 and bool(items) and bool(held)


@contextmanager
def serving(
    store: str,
    folder: Path,
    *,
    text: str | None = None,
    program: str = PROGRAM,
    is_full: Callable[[Store], bool] = is_full,
) -> Iterator[Served]:
    """`text`: what users wrote into everything; None leaves the store empty. `program`: a module of this folder that has a `fill`, and
    `is_full`: whether its jobs have come to where they stay."""
    file = str(Path(__file__).parent / f"{program}.py")
    variables = {
        "LATESHIFT_STORE": store,
        "TEXT_OF_USERS": text or "",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    with ExitStack() as stack:
        if text is not None:
            subprocess.run(
                [sys.executable, "-c", f"from tests.browser.{program} import fill; fill()"],
                check=True, timeout=60, env=environment(**variables), cwd=folder,
            )  # fmt: skip
            (folder / "worker").mkdir()
            stack.enter_context(started("up", file, cwd=folder / "worker", **variables))
            with closing(open_store(store)) as opened:
                eventually(lambda: is_full(opened), "the store is as a page wants it")
        server = stack.enter_context(
            started("serve", file, "--port", "0", "--show-secrets", cwd=folder, **variables)
        )
        out = folder / "output"
        eventually(lambda: "/sign-in?code=" in out.read_text() or server.poll() is not None, "it serves")
        [link] = re.findall(r"http://\S+/sign-in\?code=[\w-]+", out.read_text())
        yield Served(link.partition("/sign-in")[0], link, store)
