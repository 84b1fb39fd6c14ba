"""The program of docs/pipelines.md and the example, run as they stand there."""

import re
from pathlib import Path

from tests.walks.test_workflows_docs import ROOT, run

PAGE = ROOT / "docs" / "pipelines.md"
DRIVE = """
import asyncio


async def main() -> None:
    async with app.running():
        job = await pipeline.aenqueue("1,2,3")
        print(await job.aresult())
        print((await pipeline.aprogress()).completed)


asyncio.run(main())
"""


def test_the_program_does_what_it_says(store_url: str, tmp_path: Path) -> None:
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[0]
    (tmp_path / "intake.py").write_text(program + DRIVE)
    assert run(tmp_path / "intake.py", store_url) == ["14", "1"]


def test_the_example_publishes_one_album_and_holds_the_other(store_url: str) -> None:
    said = run(ROOT / "examples" / "pipeline.py", store_url)
    assert "cats: marked-lynx.png, marked-puma.png, marked-lion.png" in said
    assert "held: step 3.1.1.1 shrink failed: Permanent: owl.png cannot be read" in said
    assert "1 completed, 1 held at shrink" in said
