"""The API does what the command line can: every command has its routes in docs/api.md, or a reason why it has none."""

import re
from pathlib import Path

from lateshift.api.application import matrix
from lateshift.cli.main import lateshift as command_line
from tests.project.test_documents import commands, section

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


def test_every_command_has_its_routes_or_a_reason() -> None:
    here = section(PAGE, "Commands and routes")
    with_routes, without = here.split("Some have none:")
    routed = dict(re.findall(r"^\| `([\w -]+)` \| (`.*`) \|$", with_routes, flags=re.MULTILINE))
    reasons = dict(re.findall(r"^\| `([\w -]+)` \| ([^`|]+) \|$", without, flags=re.MULTILINE))
    known = {path.removeprefix("lateshift ") for path, _ in commands(command_line, "lateshift")}
    assert not routed.keys() & reasons.keys()
    assert routed.keys() | reasons.keys() == known
    served = {f"{method} {path}" for method, path, _, _ in matrix()}
    named = {route for routes in routed.values() for route in re.findall(r"`([^`]+)`", routes)}
    assert named <= served
