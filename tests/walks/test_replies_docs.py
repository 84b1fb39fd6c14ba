"""The program of docs/replies.md, run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from lateshift import JobEvent
from lateshift.model.events import KINDS
from tests.walks.commands import environment

PAGE = (Path(__file__).parents[2] / "docs" / "replies.md").read_text()


def test_the_program_does_what_it_says(store_url: str, tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "payments.py").write_text(program)

    said = subprocess.run(
        [sys.executable, "payments.py"], cwd=tmp_path, env=environment(LATESHIFT_STORE=store_url),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    lines = said.stdout.splitlines()
    assert [line for line in lines if line.startswith("order 7: ")][:1] in ([], ["order 7: received"])
    watched = [line for line in lines if line.startswith("watched: ")]
    assert (watched[0], watched[-1]) == ("watched: received", "watched: completed")
    assert "jobs.images.thumbnail: received" in lines
    assert said.stderr == ""


def test_every_kind_and_field_of_an_event_is_documented() -> None:
    fields = [field.name for field in msgspec.structs.fields(JobEvent)]
    assert [name for name in [*KINDS, *fields] if f"`{name}`" not in PAGE] == []
