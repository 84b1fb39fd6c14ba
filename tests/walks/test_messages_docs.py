"""The program of docs/messages.md and examples/inbox.py, run as they stand there; and the numbers of the page."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.model.triggering.sources import MESSAGE_WINDOW, MessageSource
from lateshift.triggers import messages
from lateshift.triggers.brokers import envelopes
from tests.walks.commands import environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "messages.md").read_text()


def test_the_program_of_the_page_has_the_triggers_that_it_shows(tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    names: dict[str, Any] = {"__name__": "shop"}
    exec(compile(program, "messages.md", "exec"), names)
    app: Lateshift = names["app"]
    assert {name: trigger.declared.about for name, trigger in app.triggers.items()} == {
        "pack": "amqp://rabbit.example// queue orders",
        "mail": "redis://redis.example/0 queue mail",
    }


def test_the_example_makes_one_job_of_each_order(store_url: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "inbox.py")], cwd=tmp_path, env=environment(LATESHIFT_STORE=store_url),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "trigger pack refused 1 of what came, such as: " in done.stderr
    *orders, counts, refused = done.stdout.splitlines()
    assert sorted(orders) == ["order 1: a lamp", "order 2: a kettle", "order 3: a chair"]
    assert counts == "3 jobs, 1 sent twice, 1 refused:"
    assert refused.startswith("  what it is known by cannot be told: ")


@pytest.mark.parametrize(
    "said",
    [
        f"| `prefetch` | {MessageSource(url='', queue='').prefetch} |",
        f"| `window` | {MESSAGE_WINDOW.days} days |",
        f"{envelopes.UNPACKED_LIMIT // 2**20} MiB unpacked",
        f"heartbeats ({messages.HEARTBEAT:g} seconds)",
        "every five seconds" if messages.COUNT_EVERY == 5 else "?",
        *(f"`{scheme}://`" for scheme in ("amqp", "amqps", *messages.REDIS, "sqs", "azurestoragequeues", "azureservicebus")),
    ],
)  # fmt: skip
def test_the_page_says_what_the_code_does(said: str) -> None:
    assert said in PAGE
