"""Settings: where each comes from, and what a wrong one is told."""

from datetime import timedelta
from pathlib import Path

import pytest

from lateshift.config import Settings, load
from lateshift.errors import OptionInvalid


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STORE", "THREADS", "QUEUES", "HEARTBEAT"):
        monkeypatch.delenv(f"LATESHIFT_{name}", raising=False)


def test_without_anything_the_store_is_a_file_here(tmp_path: Path) -> None:
    assert load(tmp_path).store == "sqlite:///lateshift.db"


def test_arguments_win_over_the_environment_over_the_file_over_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lateshift.toml").write_text(
        'threads = 2\nprocess_slots = 3\nqueues = ["a", "b.*"]\nheartbeat = 5'
    )
    monkeypatch.setenv("LATESHIFT_THREADS", "4")
    settings = load(tmp_path, concurrency=9, store=None)
    assert (settings.threads, settings.process_slots, settings.concurrency) == (4, 3, 9)
    assert settings.queues == ("a", "b.*")
    assert settings.heartbeat == timedelta(seconds=5)
    assert settings.sources["threads"] == "the environment (LATESHIFT_THREADS)"
    assert settings.sources["process_slots"].endswith("lateshift.toml")
    assert settings.sources["concurrency"] == "an argument"
    assert "store" not in settings.sources


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("thread = 2", "there is no setting 'thread'"),
        ("threads = 'many'", "threads cannot be 'many'"),
        ("threads = ", "is no TOML"),
        ("threads = 0", "threads must be at least 1"),
        ("heartbeat = 0.5", "heartbeat must be at least 1 second"),
        ("stop_time = -1", "stop_time must not be negative"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "lateshift.toml").write_text(text)
    with pytest.raises(OptionInvalid, match=says):
        load(tmp_path)


def test_queues_in_the_environment_are_separated_by_commas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATESHIFT_QUEUES", "mail, images.*,")
    assert load(tmp_path).queues == ("mail", "images.*")


def test_settings_are_equal_wherever_they_came_from() -> None:
    assert Settings(sources={"store": "an argument"}) == Settings()


def test_a_misspelt_variable_is_refused_and_anybody_elses_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOKEN_OF_MINE", "STORE2", "STORE_B"):
        monkeypatch.setenv(f"LATESHIFT_{name}", "x")
    load(tmp_path)
    monkeypatch.setenv("LATESHIFT_CONCURENCY", "9")
    with pytest.raises(OptionInvalid, match="Did you mean LATESHIFT_CONCURRENCY"):
        load(tmp_path)
