"""What can be said of a queue, and of what makes a job unique."""

from datetime import timedelta
from typing import Any

import pytest

from lateshift import Lateshift, Unique
from lateshift.errors import OptionInvalid
from lateshift.model.job import Scope
from lateshift.model.queue import LARGEST_MAX_READY


@pytest.fixture
def app() -> Lateshift:
    return Lateshift("test", store="sqlite:///unused.db")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"max_ready": 0}, "from 1 to 1,000,000"),
    ({"max_ready": LARGEST_MAX_READY + 1}, "from 1 to 1,000,000"),
    ({"max_ready": True}, "from 1 to"),
    ({"max_ready": 1.5}, "from 1 to"),
    ({"max_ready": "10"}, "from 1 to"),
    ({"max_ready": 1, "when_full": "drop"}, "'raise', 'shed_new', 'shed_oldest', 'shed_lowest', not 'drop'"),
    ({"max_ready": 1, "when_full": None}, "when_full is one of"),
    ({"max_ready": 1, "wait": 2}, "wait is a timedelta"),
    ({"max_ready": 1, "wait": timedelta(seconds=-1)}, "not be negative"),
    ({"max_ready": 1, "wait": timedelta.max}, "3,650 days"),
    ({"when_full": "shed_new"}, "give max_ready too"),
    ({"wait": timedelta(seconds=1)}, "give max_ready too"),
    ({"duplicates": timedelta(0)}, "longer than nothing"),
    ({"duplicates": 5}, "duplicates is a timedelta"),
    ({"duplicates": timedelta.max}, "3,650 days"),
]


@pytest.mark.parametrize(("options", "says"), WRONG, ids=str)
def test_a_wrong_setting_is_refused_and_the_queue_is_not_declared(
    app: Lateshift, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(OptionInvalid, match=says):
        app.queue("orders", **options)
    assert dict(app.queues) == {}


@pytest.mark.parametrize("name", ["", "no spaces", "images.*", "x" * 101, None, 7])
def test_a_name_that_no_queue_can_have_is_refused(app: Lateshift, name: Any) -> None:
    with pytest.raises(OptionInvalid, match="is no queue name"):
        app.queue(name, max_ready=5)


def test_a_queue_is_declared_once_or_alike(app: Lateshift) -> None:
    settings = app.queue("orders", max_ready=5)
    assert app.queue("orders", max_ready=5) == settings
    with pytest.raises(OptionInvalid, match=r"orders is declared twice.*max_ready=5.*max_ready=6"):
        app.queue("orders", max_ready=6)
    assert app.queues["orders"] == settings


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"by": "user_id"}, "by is a tuple"),
        ({"by": (1,)}, "by is a tuple"),
        ({"while_": "running"}, '"waiting" or "unsettled"'),
        ({"window": 5}, "window is a timedelta"),
        ({"window": timedelta(0)}, "longer than nothing"),
        ({"window": timedelta.max}, "3,650 days"),
    ],
    ids=str,
)
def test_a_wrong_rule_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionInvalid, match=says):
        Unique(**options)


def test_a_rule_for_arguments_that_the_task_does_not_take_is_refused(app: Lateshift) -> None:
    with pytest.raises(OptionInvalid, match=r"'user'.*It takes \(user_id, why\)"):

        @app.task(unique=Unique(by=("user",)))
        def remind(user_id: int, why: str) -> None: ...

    @app.task
    def greet(user_id: int) -> None: ...

    with pytest.raises(OptionInvalid, match="'why'"):
        greet.options(unique=Unique(by=["why"]))
    for wrong in ("user_id", 5, ("user_id",)):
        with pytest.raises(OptionInvalid, match="unique is a Unique"):
            greet.options(unique=wrong)  # type: ignore[arg-type]


def test_a_rule_that_says_nothing_holds_until_the_job_is_settled(app: Lateshift) -> None:
    @app.task
    def greet(user_id: int) -> None: ...

    hour = timedelta(hours=1)
    for rule, scope, window in (
        (Unique(), Scope.UNSETTLED, timedelta(0)),
        (Unique(while_="waiting"), Scope.WAITING, timedelta(0)),
        (Unique(window=hour), Scope.NONE, hour),
        (Unique(while_="unsettled", window=hour), Scope.UNSETTLED, hour),
    ):
        identity = greet.options(unique=rule).call(7).job.unique
        assert identity is not None
        assert (identity.scope, identity.window) == (scope, window)


def test_equal_calls_have_equal_identities_however_they_are_written(app: Lateshift) -> None:
    @app.task(unique=True)
    def work(
        number: float, name: str = "a", *, tags: frozenset[str] = frozenset(), odd: Any = object
    ) -> None: ...

    def same(*calls: Any) -> bool:
        return len({call.job.unique.digest for call in calls}) == 1

    assert same(work.call(1), work.call(1.0), work.call(number=1), work.call(1, "a"), work.call(1, name="a"))
    assert same(work.call(1), work.call(1, tags=frozenset()))
    assert same(work.call(1, tags=frozenset("ab")), work.call(1, tags=frozenset("ba")))
    for other in (work.call(2), work.call(1, "b"), work.call(1, tags=frozenset("a")), work.call(1, odd=1)):
        assert not same(work.call(1), other)


def test_only_the_chosen_arguments_count(app: Lateshift) -> None:
    @app.task(unique=Unique(by=("user_id",)))
    def remind(user_id: int, why: str = "") -> None: ...

    def digest(call: Any) -> bytes:
        return bytes(call.job.unique.digest)

    assert digest(remind.call(7, "a")) == digest(remind.call(7, "b")) == digest(remind.call(7))
    assert digest(remind.call(7)) != digest(remind.call(8))
    assert digest(remind.options(unique=True).call(7, "a")) != digest(
        remind.options(unique=True).call(7, "b")
    )
    assert remind.options(unique=False).call(7).job.unique is None
    assert digest(remind.options(queue="other", priority=5).call(7)) == digest(remind.call(7))


def test_other_tasks_and_other_queues_of_a_window_are_others(app: Lateshift) -> None:
    minute = timedelta(minutes=1)
    app.queue("a", duplicates=minute)
    app.queue("b", duplicates=minute)
    app.queue("c", max_ready=5)

    @app.task(queue="a")
    def one(number: int) -> None: ...

    @app.task(queue="a")
    def two(number: int) -> None: ...

    @app.task(queue="a", unique=Unique(while_="waiting"))
    def own(number: int) -> None: ...

    identities = [one.call(1), two.call(1), one.options(queue="b").call(1)]
    assert len({call.job.unique.digest for call in identities if call.job.unique}) == 3
    assert {call.job.unique.window for call in identities if call.job.unique} == {minute}
    assert one.options(queue="c").call(1).job.unique is None
    assert one.options(queue="plain").call(1).job.unique is None
    assert one.options(unique=False).call(1).job.unique is None
    rule = own.call(1).job.unique
    assert rule is not None
    assert (rule.scope, rule.window) == (Scope.WAITING, timedelta(0))  # its own instead of the queue's
