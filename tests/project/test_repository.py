"""What holds for the repository as a whole: no trace of the machine it was written on, small files, honest set-up."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("core", "dev", "bench", "brokers")

# Put together here, so that this file does not contain what it looks for.
REGISTRY_HOSTS = [f"{name}.org" for name in ("pypi", "pythonhosted", "npmjs", "debian")]
BUILD_PATHS = re.compile(r"(?<![\w.~*-])/(?:root|work|home)" + "/")


def tracked_files() -> list[Path]:
    """What git has or would add; every file where this is no clone."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(asked, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        found = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        found = [each for each in ROOT.rglob("*") if not _is_made(each.relative_to(ROOT))]
    return [each for each in found if each.is_file()]


def _is_made(path: Path) -> bool:
    return any((part.startswith(".") and part != ".ci") or part == "__pycache__" for part in path.parts)


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""  # a picture, say


def lines_with(wrong: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in tracked_files()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if wrong.search(line)
    ]


def test_no_file_names_a_package_registry() -> None:
    assert lines_with(re.compile("|".join(re.escape(host) for host in REGISTRY_HOSTS))) == []


def test_no_file_holds_a_path_of_the_machine_it_was_made_on() -> None:
    assert lines_with(BUILD_PATHS) == []


def test_every_source_file_is_under_400_lines() -> None:
    sources = [path for path in tracked_files() if path.is_relative_to(ROOT / "src")]
    lengths = {str(path.relative_to(ROOT)): len(text_of(path).splitlines()) for path in sources}
    assert sources
    assert {name: length for name, length in lengths.items() if length >= 400} == {}


def test_the_map_in_contributing_has_every_folder_and_every_file_of_the_package() -> None:
    told = text_of(ROOT / "CONTRIBUTING.md").split("## What is where")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+(?:/|\.py))`", told))
    package = ROOT / "src" / "lateshift"
    folders = {f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()}
    files = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    assert folders
    assert folders | files <= named


def test_ci_runs_the_checks_and_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    commands = script.read_text().splitlines()
    assert "make check" in commands
    assert "make test" in commands
    assert "make test-brokers" in commands
    assert script.stat().st_mode & 0o100, "not executable: chmod +x .ci/run"


def test_the_makefile_has_every_target_that_is_promised() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert {
        "run",
        "test",
        "test-brokers",
        "check",
        "format",
        "bench",
        "crash",
        "lock",
        "clean",
        "help",
    } <= set(targets)


@pytest.mark.parametrize("command", ["make run", "make test"])
def test_the_readme_names_the_two_commands(command: str) -> None:
    assert command in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_pins_every_distribution_by_hash_and_names_no_index(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    entries = [each for each in re.split(r"\n(?=\S)", text.strip()) if not each.startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==\S+", entry), f"not pinned: {entry[:80]}"
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), f"no hash: {entry[:80]}"
        assert "://" not in entry
        assert not re.search(r"--(?!hash=)", entry), f"an option of pip: {entry[:80]}"


def test_the_lock_files_agree_so_that_one_environment_holds_all() -> None:
    pinned: dict[str, set[frozenset[str]]] = {}
    for name in LOCKS:
        versions: dict[str, set[str]] = {}
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        for project, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, flags=re.MULTILINE):
            versions.setdefault(project, set()).add(version)
        for project, some in versions.items():
            pinned.setdefault(project, set()).add(frozenset(some))
    assert {project: found for project, found in pinned.items() if len(found) > 1} == {}
