"""The program of docs/sensitive.md, run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

from lateshift.store.postgres.roles import ROLES
from tests.sealing.clinic import DIGEST, OLD
from tests.walks.commands import environment

PAGE = Path(__file__).parents[2] / "docs" / "sensitive.md"


def test_the_program_does_what_it_says(store_url: str, tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "clinic.py").write_text(program)
    variables = environment(LATESHIFT_STORE=store_url, LATESHIFT_KEYS=f"{OLD},{DIGEST}")
    said = subprocess.run(
        [sys.executable, "clinic.py"], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=True
    )  # fmt: skip
    [shown] = re.findall(r"\$ python clinic.py\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert (said.stdout, said.stderr) == (shown, "")


def test_every_role_is_documented() -> None:
    assert [role for role in ROLES if f"`lateshift_{role}`" not in PAGE.read_text()] == []
