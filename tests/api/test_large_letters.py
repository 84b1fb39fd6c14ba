"""Dead letters with large arguments: a preview shows of each what somebody can read, and what is carried in one transaction is bounded."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Lateshift, Permanent
from lateshift.dead_letters import resubmission
from lateshift.dead_letters.dead_letters import DeadLetters
from lateshift.dead_letters.resubmission import EXAMPLES, EXAMPLES_BYTES
from lateshift.model.sealed import LEFT
from lateshift.testing import Kit
from lateshift.testing.interposed import Interposed
from tests.api.asking import Web
from tests.api.shop import Shop

PREVIEW = "/v1/dead-letters/preview"
LARGE = "é" * 120_000  # 240 kB
MANY = 30


class Packing(Shop):
    def __init__(self, app: Lateshift) -> None:
        super().__init__(app)

        @app.task
        def pack(text: str, box: str = "small") -> None:
            raise Permanent("no box fits")

        self.pack = pack


@pytest.fixture
def shop(app: Lateshift) -> Packing:
    return Packing(app)


def bury(kit: Kit, shop: Packing, *texts: str) -> None:
    kit.app.enqueue_many(shop.pack.call(text) for text in texts)
    kit.drain()


def test_a_preview_shows_small_arguments_whole_and_of_large_ones_the_beginning(
    web: Web, kit: Kit, shop: Packing
) -> None:
    bury(kit, shop, *[LARGE] * MANY, "cat")
    answer = web("POST", PREVIEW, {"all": True})
    plan = answer.json()
    assert (len(plan["ids"]), plan["would_edit"], len(plan["examples"])) == (MANY + 1, 0, EXAMPLES)
    small, *large = plan["examples"]
    assert small["before"] == small["after"] == {"text": "cat"}
    for each in large:
        assert each["before"] == each["after"]
        assert each["before"].startswith('{"text":"é')
        assert len(each["before"]) <= LEFT + 1
    assert len(answer.content) < (EXAMPLES + MANY) * 4 * LEFT


def test_of_large_arguments_that_are_changed_few_examples_are_shown_each_whole(
    web: Web, kit: Kit, shop: Packing
) -> None:
    bury(kit, shop, *[LARGE] * MANY)
    answer = web("POST", PREVIEW, {"all": True, "change": {"box": "large"}})
    plan = answer.json()
    assert (len(plan["ids"]), plan["would_edit"]) == (MANY, MANY)
    assert 1 < len(plan["examples"]) < EXAMPLES
    assert plan["examples"][0]["before"] == {"text": LARGE}
    assert plan["examples"][0]["after"] == {"text": LARGE, "box": "large"}
    assert len(answer.content) < 2 * EXAMPLES_BYTES


@pytest.mark.parametrize("first", [0, MANY])
def test_what_is_changed_goes_in_transactions_of_bounded_size_and_what_stays_in_one(
    kit: Kit, shop: Packing, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setattr(resubmission, "BATCH_BYTES", 10_000)
    sizes: list[list[int]] = []

    def look(verb: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if verb == "jobs.resubmit":
            sizes.append([edit.size for edit in kwargs["edits"].values()])
        return call(*args, **kwargs)

    letters = DeadLetters(Interposed(kit.app.store, look), kit.app.tasks, kit.app.clock)
    bury(kit, shop, *["x" * 1_000] * MANY)
    done = letters.resubmit({"box": "large"}, first=first, wait=timedelta(0))
    assert (len(done.ids), done.edited) == (MANY, MANY)
    assert len(sizes) > 1
    assert max(sum(each[:-1]) for each in sizes) <= 10_000
    kit.drain()

    sizes.clear()
    assert len(letters.resubmit(first=first, wait=timedelta(0)).ids) == MANY
    assert sizes == [[]]
