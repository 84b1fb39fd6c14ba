"""`GET /metrics` on both stores: in either format, and one look for scrapes that come together or soon after one another."""

from unittest.mock import patch

import pytest

from lateshift.api.bounds import METRICS_EVERY
from lateshift.api.routes.metrics import likes_openmetrics
from lateshift.telemetry.exposition import CONTENT_TYPE, OPENMETRICS_TYPE
from lateshift.telemetry.liveness import living
from lateshift.telemetry.looking import look
from lateshift.testing import Kit
from tests.api.asking import Web
from tests.api.shop import Shop
from tests.telemetry.reading import read

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def test_the_metrics_tell_of_the_store_and_of_the_loops_of_this_process(web: Web, shop: Shop) -> None:
    shop.send.enqueue("ann")
    with living("Sweep"):
        answer = web("GET", "/metrics")
    assert answer.headers["content-type"] == CONTENT_TYPE
    assert answer.headers["vary"] == "Accept"
    found = read(answer.text)
    assert found["lateshift_jobs", frozenset({("queue", "mail"), ("state", "ready")})] == 1
    assert found["lateshift_loop_late", frozenset({("loop", "Sweep")})] == 0
    assert ("lateshift_loop_age_seconds", frozenset({("loop", "Sweep")})) in found


def test_prometheus_gets_openmetrics(web: Web) -> None:
    answer = web("GET", "/metrics", headers={"Accept": PROMETHEUS})
    assert answer.headers["content-type"] == OPENMETRICS_TYPE
    assert answer.text.endswith("# EOF\n")
    read(answer.text)


@pytest.mark.parametrize(
    ("accepts", "openmetrics"),
    [
        ("", False), ("*/*", False), ("text/plain", False), (PROMETHEUS, True),
        ("application/openmetrics-text", True), ("application/openmetrics-text;version=2.0.0", False),
        ("application/openmetrics-text;q=0.5, text/plain", False), ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=odd", False), (";;,=,", False),
    ],
)  # fmt: skip
def test_the_header_decides_which_format_it_is(accepts: str, openmetrics: bool) -> None:
    assert likes_openmetrics(accepts) is openmetrics


def test_scrapes_that_come_together_or_within_a_second_share_one_look(web: Web, kit: Kit) -> None:
    with patch("lateshift.api.routes.metrics.look", wraps=look) as looked:
        answers = web.at_once(20, "GET", "/metrics", None)
        assert {answer.status_code for answer in answers} == {200}
        assert looked.call_count == 1
        kit.clock.move(seconds=METRICS_EVERY.total_seconds())
        web("GET", "/metrics")
        assert looked.call_count == 2
