"""An app on each store, for whole lives of jobs in one process."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from lateshift import Lateshift


@pytest.fixture
def app(store_url: str) -> Iterator[Lateshift]:
    app = Lateshift("test", store=store_url)
    app.settings = replace(
        app.settings, stop_time=timedelta(milliseconds=200), unknown_delay=timedelta(milliseconds=50)
    )
    yield app
    app.close()
