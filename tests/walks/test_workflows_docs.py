"""The program of docs/workflows.md and the example, run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

from tests.walks.commands import environment

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "workflows.md"
DRIVE = """
import asyncio


async def main() -> None:
    async with app.running():
        job = await fulfil.aenqueue(7)
        await app.asignal(job.id, "picked", "ann")
        print(await job.aresult())


asyncio.run(main())
"""


def run(program: Path, store_url: str) -> list[str]:
    said = subprocess.run(
        [sys.executable, str(program)], cwd=program.parent, env=environment(LATESHIFT_STORE=store_url),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return said.stdout.splitlines()


def test_the_program_does_what_it_says(store_url: str, tmp_path: Path) -> None:
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[0]
    (tmp_path / "orders.py").write_text(program + DRIVE)
    assert run(tmp_path / "orders.py", store_url) == ["shelf 7, 700 paid, picked by ann"]


def test_the_example_ships_one_order_and_undoes_the_other(store_url: str) -> None:
    said = run(ROOT / "examples" / "fulfilment.py", store_url)
    assert "order 7: shipped" in said
    assert "order 7: shelf 7, picked by ann" in said
    assert "order 13: shipped" not in said
    assert said.index("order 13: 1300 refunded") < said.index("order 13: shelf 3 released")
    assert "is a dead letter (undone)" in said[-1]
