"""A scene on each store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.scene import Scene


def played(scene: Scene) -> Iterator[Scene]:
    """Lends a scene to a test; what its processes said is shown if the test fails."""
    yield scene
    scene.close()
    print(scene.story())


@pytest.fixture
def scene(tmp_path: Path, store_url: str) -> Iterator[Scene]:
    """Members fall silent after 30 seconds: whatever comes back sooner was seen to die."""
    scene = Scene(tmp_path, store_url)
    yield from played(scene)


@pytest.fixture
def short(tmp_path: Path, store_url: str) -> Iterator[Scene]:
    """A scene where a member is dead after 3 seconds of silence."""
    scene = Scene(tmp_path, store_url, heartbeat=3.0)
    yield from played(scene)
