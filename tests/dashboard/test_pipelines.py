"""Pipelines on their pages, on both stores."""

from collections.abc import Iterator

import pytest

from lateshift import NO_RETRY, Lateshift, Permanent, fan_in, fan_out
from lateshift.dashboard.pages.pipelines import PIPELINES_SHOWN
from lateshift.model.access import Scope
from lateshift.testing import testing
from tests.dashboard.browsing import Browser, browsing
from tests.dashboard.test_workflows import html


@pytest.fixture
def reader(store_url: str) -> Iterator[Browser]:
    app = Lateshift("reader", store=store_url)
    app.queue("store", max_ready=2)

    @app.task(queue="parse", retry=NO_RETRY)
    def parse(text: str) -> list[str]:
        if text == "bad":
            raise Permanent("no such text")
        return text.split()

    @app.task(queue="store")
    def store(word: str) -> int:
        return len(word)

    @app.task(queue="total")
    def total(lengths: list[int]) -> int:
        return sum(lengths)

    pipeline = app.pipeline(parse | fan_out(store) | fan_in(total), name="words & more")
    with testing(app, store=store_url) as kit, browsing(app) as browser:
        for text in ("a b", "c", "bad"):
            pipeline.enqueue(text)
        kit.travel(seconds=5)  # until there is room again
        browser.sign_in()
        yield browser


def test_an_empty_list_says_how_a_pipeline_is_made(browser: Browser) -> None:
    assert "app.pipeline(parse | store)" in browser.look("/pipelines")
    assert browser.ask("GET", "/pipelines/nothing").status_code == 404
    assert PIPELINES_SHOWN == 50


def test_pipelines_are_listed_with_what_became_of_their_items(reader: Browser) -> None:
    text = reader.look("/pipelines")
    assert "words & more 0 0 1 0 2 0 parse | fan_out(store) | fan_in(total)" in text
    assert "/workflows?name=words%20%26%20more&amp;state=held" in html(reader)


def test_one_has_its_graph_its_filters_and_the_room_in_their_queues(reader: Browser) -> None:
    text = reader.look("/pipelines/words%20%26%20more")
    assert "1 held" in text
    assert "each" in text
    page = html(reader)
    assert 'href="#at-1"' in page
    assert 'id="at-3"' in page
    assert "<style" not in page
    assert "store 0 0 0 0 store 0 2" in text
    assert "parse 0 0 1 0 parse 0 no bound" in text
    assert "Items wait for you" in text


@pytest.mark.parametrize("queue", ["mail", "parse"])
def test_a_pipeline_is_of_many_queues_and_a_token_for_some_sees_none_of_it(
    reader: Browser, queue: str
) -> None:
    reader.sign_in_as(Scope.READ, queues=(queue,))
    for path in ("/pipelines", "/pipelines/words%20%26%20more"):
        assert reader.ask("GET", path).status_code == 403
