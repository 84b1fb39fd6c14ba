"""docs/api.md tells the truth: every route with who may, and every limit with its value."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from lateshift.api import bounds
from lateshift.api.application import matrix

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
LIMITS = [
    name for name, value in vars(bounds).items() if name.isupper() and isinstance(value, int | timedelta)
]


def test_every_route_is_documented_with_who_may_and_no_other_is() -> None:
    said = re.findall(r"^\| `(GET|POST) (\S+)` \| ([\w ,]+) \| ([\w ]*?) ?\|", PAGE, flags=re.MULTILINE)
    assert sorted(said) == sorted(matrix())


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_documented_with_its_value(name: str) -> None:
    value = getattr(bounds, name)
    [said] = re.findall(rf"\| `{name}` \| (.*) \|", PAGE)
    match value:
        case timedelta():
            assert said == f"{value.total_seconds():g} s"
        case _ if value % 1024 == 0:
            assert said == f"{value // 1024} KiB"
        case _:
            assert said == f"{value:,}"
