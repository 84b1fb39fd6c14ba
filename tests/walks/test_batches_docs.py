"""The program of docs/batches.md, run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

from tests.walks.commands import environment

PAGE = Path(__file__).parents[2] / "docs" / "batches.md"


def test_the_program_does_what_it_says(store_url: str, tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "squares.py").write_text(program)

    said = subprocess.run(
        [sys.executable, "squares.py"], cwd=tmp_path, env=environment(LATESHIFT_STORE=store_url),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    lines = said.stdout.splitlines()
    assert f"the sum is {sum(number * number for number in range(1000))}" in lines
    assert lines[0].endswith(" of 1000")
    assert lines.count("1000 of 1000") >= 1
    assert not any("failed" in line for line in lines)
    assert said.stderr == ""
