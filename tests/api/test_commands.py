"""The API does what the command line can: every command has its routes in docs/api.md and every option its field, or a reason why it
has none."""

import re
from pathlib import Path

import click

from lateshift.api.application import matrix, with_document
from lateshift.api.route import Route
from lateshift.api.routes.all import ROUTES
from lateshift.cli.main import lateshift as command_line
from tests.project.test_documents import commands, section

FOR_ALL = re.compile(r"^\| `(--[\w-]+)` \| ([^|]+) \|$", re.MULTILINE)
ROW = re.compile(r"^\| `([a-z][\w -]*?) (--[\w-]+)` \| (.+) \|$", re.MULTILINE)
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


def routed() -> dict[str, list[Route]]:
    with_routes = section(PAGE, "Commands and routes").split("Some have none:")[0]
    served = {f"{route.method} {route.shown_path}": route for route in with_document(ROUTES)}
    rows = re.findall(r"^\| `([\w -]+)` \| (`.*`) \|$", with_routes, flags=re.MULTILINE)
    return {command: [served[name] for name in re.findall(r"`([^`]+)`", named)] for command, named in rows}


def fields(route: Route) -> set[str]:
    """What a request of it can say."""
    said = {name for kind in (route.asks, route.takes) for name in getattr(kind, "__struct_fields__", ())}
    return said | set(route.parameters) | ({"Idempotency-Key"} if route.method == "POST" else set())


def test_every_option_of_a_command_with_routes_is_a_field_of_one_or_has_a_reason() -> None:
    renamed, left_out = section(PAGE, "Options and fields").split("Some have none")
    others = {(command, option): field.strip("`") for command, option, field in ROW.findall(renamed)}
    reasons = {(command, option) for command, option, _ in ROW.findall(left_out)}
    of_all = {option for option, _ in FOR_ALL.findall(left_out)}
    routes, seen = routed(), set()
    for path, command in commands(command_line, "lateshift"):
        name = path.removeprefix("lateshift ")
        if name not in routes:
            continue
        there = {field for route in routes[name] for field in fields(route)}
        for option in (each for each in command.params if isinstance(each, click.Option)):
            long = next(each for each in option.opts if each.startswith("--"))
            seen |= {(name, long), ("", long)}
            ways = [
                long[2:].replace("-", "_") in there, (name, long) in others, (name, long) in reasons, long in of_all,
            ]  # fmt: skip
            assert sum(ways) == 1, f"{name} {long}: {ways}"
            assert others.get((name, long)) in there | {None}, f"{name} {long} is no field of its routes"
    assert others.keys() | reasons <= seen, "an option that no command has"
    assert {("", option) for option in of_all} <= seen
