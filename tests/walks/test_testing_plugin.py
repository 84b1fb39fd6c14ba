"""The pytest plug-in, in a project of its own."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.walks.commands import SOURCES

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

SHOP = """
from lateshift import Lateshift

app = Lateshift("shop")

@app.task
def pack(order: int) -> str:
    return f"packed {order}"
"""

TESTS = """
from shop import pack

def test_the_kit_of_the_configured_app(lateshift_kit):
    job = pack.enqueue(7)
    lateshift_kit.assert_enqueued(pack, 7)
    lateshift_kit.drain()
    assert lateshift_kit.result(job) == "packed 7"

def test_a_fresh_store_for_each_test(lateshift_kit):
    assert lateshift_kit.enqueued() == []

def test_any_app(lateshift_testing):
    from shop import app
    kit = lateshift_testing(app)
    with kit.inline():
        assert kit.result(pack.enqueue(8)) == "packed 8"
"""


def said_by_pytest(folder: Path, *arguments: str) -> str:
    """What pytest says at its end, with this plug-in and no other."""
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": f"{SOURCES}:{folder}"}
    alone.pop("PYTEST_ADDOPTS", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "lateshift.testing.plugin",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    done = subprocess.run(
        command, cwd=folder, env=alone, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TESTS)
    return tmp_path


def test_the_fixtures_give_a_kit_on_the_apps_that_are_named(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nlateshift_app = shop:app\n")
    assert "3 passed" in said_by_pytest(project, "--strict-config")
    assert not (project / "lateshift.db").exists()


def test_a_fixture_of_the_projects_own_names_the_app_as_well(project: Path) -> None:
    own = "import pytest\nimport shop\n\n@pytest.fixture\ndef lateshift_app():\n    return shop.app\n"
    (project / "conftest.py").write_text(own)
    assert "3 passed" in said_by_pytest(project)


def test_without_an_app_the_fixture_says_what_to_do(project: Path) -> None:
    said = said_by_pytest(project)
    assert "Set lateshift_app = shop:app" in said
    assert "1 passed, 2 errors" in said


def test_the_example_passes(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "test_shop_orders.py", tmp_path)
    said = said_by_pytest(tmp_path)
    assert "6 passed" in said, said


def test_pytest_finds_the_plug_in_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"lateshift": "lateshift.testing.plugin"}
