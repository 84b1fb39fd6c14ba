"""A scene on each store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.scene import Scene


@pytest.fixture
def scene(tmp_path: Path, store_url: str) -> Iterator[Scene]:
    """Members fall silent after 30 seconds: whatever comes back sooner was seen to die."""
    scene = Scene(tmp_path, store_url)
    yield scene
    scene.close()


@pytest.fixture
def short(tmp_path: Path, store_url: str) -> Iterator[Scene]:
    """A scene where a member is dead after 3 seconds of silence."""
    scene = Scene(tmp_path, store_url, heartbeat=3.0)
    yield scene
    scene.close()
