"""The application's own events: one job for each task that subscribed, in the emitter's transaction."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lateshift import Event, JobFilter, Lateshift, Limit
from lateshift.app.emitting import HEARD_FOR
from lateshift.errors import ArgumentsInvalid, EventInvalid, OptionInvalid, QueueFull, TriggerInvalid
from lateshift.model.job import PAYLOAD_LIMIT
from lateshift.testing import testing
from lateshift.testing.kit import Kit
from tests.store_contract.driving import file_of


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


def jobs(app: Lateshift) -> list[tuple[str, bytes]]:
    return sorted((view.task, view.payload) for view in app.store.reports.jobs(JobFilter(), 100))


def test_an_event_makes_one_job_for_each_task_that_subscribed(app: Lateshift) -> None:
    @app.on("order.placed")
    def pack(order: dict[str, int]) -> None: ...

    @app.on("order.*")
    def tell(order: dict[str, int]) -> None: ...

    @app.on("customer.*")
    def greet(customer: dict[str, int]) -> None: ...

    assert len(app.emit("order.placed", {"id": 7})) == 2
    assert jobs(app) == [("pack", b'{"order":{"id":7}}'), ("tell", b'{"order":{"id":7}}')]
    assert app.emit("nobody.listens", 1) == []


@pytest.mark.anyio
async def test_a_task_may_ask_for_the_whole_event(kit: Kit) -> None:
    heard: list[Event] = []

    @kit.app.on("order.*")
    async def tell(event: Event) -> None:
        heard.append(event)

    await kit.app.aemit("order.shipped", {"id": 7})
    await kit.adrain()
    [event] = heard
    assert (event.name, event.data) == ("order.shipped", {"id": 7})
    assert abs((event.at - kit.clock.now()).total_seconds()) < 1


def test_all_jobs_of_an_event_are_made_or_none_is(app: Lateshift) -> None:
    @app.on("order.placed")
    def pack(order: dict[str, int]) -> None: ...

    @app.on("order.placed")
    def count(order: int) -> None: ...

    with pytest.raises(ArgumentsInvalid, match="count"):
        app.emit("order.placed", {"id": 7})
    assert jobs(app) == []


def test_an_event_is_there_if_and_only_if_the_callers_transaction_commits(
    store_url: str, app: Lateshift
) -> None:
    url = f"{store_url}?driver=sqlite3" if store_url.startswith("sqlite") else store_url
    mine = Lateshift("mine", store=url)

    @mine.on("order.placed")
    def pack(order: dict[str, int]) -> None: ...

    @mine.on("order.placed")
    def tell(order: dict[str, int]) -> None: ...

    connection: Any
    mine.store.ready()
    if store_url.startswith("sqlite"):
        connection = sqlite3.connect(file_of(store_url))
        connection.execute("BEGIN")
    else:
        connection = psycopg.connect(store_url)
    mine.emit("order.placed", {"id": 1}, connection=connection)
    connection.rollback()
    assert jobs(mine) == []
    if store_url.startswith("sqlite"):
        connection.execute("BEGIN")
    mine.emit("order.placed", {"id": 2}, connection=connection)
    connection.commit()
    connection.close()
    assert [payload for _, payload in jobs(mine)] == [b'{"order":{"id":2}}'] * 2
    mine.close()


def test_what_another_program_subscribed_to_is_made_too(store_url: str, app: Lateshift) -> None:
    post = Lateshift("post", store=store_url)

    @post.on("order.*")
    @post.task(queue="mail", priority=3)
    def letter(order: Event) -> None: ...

    post.readers()[0].say()  # type: ignore[attr-defined]
    [id] = app.emit("order.placed", {"id": 7})
    view = app.store.reports.job(id)
    assert view is not None
    assert (view.task, view.queue, view.priority) == ("letter", "mail", 3)
    args, _ = post.tasks["letter"].arguments.decode(view.payload)
    assert (args[0].name, args[0].data) == ("order.placed", {"id": 7})
    post.close()


def test_a_subscription_that_was_withdrawn_is_not_heard_of_any_more(
    store_url: str, app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = Lateshift("post", store=store_url)

    @post.on("order.*")
    def letter(order: dict[str, int]) -> None: ...

    post.readers()[0].say()  # type: ignore[attr-defined]
    assert len(app.emit("order.placed", {})) == 1
    post.store.triggers.declare([], app="post")
    monkeypatch.setattr("lateshift.app.emitting.HEARD_FOR", -1.0)
    assert app.emit("order.placed", {}) == []
    assert HEARD_FOR == 1.0
    post.close()


def test_a_full_queue_of_a_subscriber_refuses_the_event_as_a_whole(app: Lateshift) -> None:
    app.queue("mail", max_ready=1)

    @app.on("order.*")
    @app.task(queue="mail")
    def letter(order: int) -> None: ...

    @app.on("order.*")
    def pack(order: int) -> None: ...

    app.emit("order.placed", 1)
    with pytest.raises(QueueFull, match="mail"):
        app.emit("order.placed", 2)
    assert len(jobs(app)) == 2


@pytest.mark.parametrize("name", ["", "order.", ".placed", "order..placed", "order placed", "order.*", 7])
def test_a_name_that_is_none_is_refused(app: Lateshift, name: Any) -> None:
    with pytest.raises(EventInvalid, match="is no name of an event"):
        app.emit(name)


@pytest.mark.parametrize("pattern", ["", "order/*", "order.", 7])
def test_a_pattern_that_is_none_is_refused(app: Lateshift, pattern: Any) -> None:
    with pytest.raises(TriggerInvalid, match="is no pattern of events"):
        app.on(pattern)


def test_data_that_no_store_can_keep_is_refused_before_anything_is_written(
    store_url: str, app: Lateshift
) -> None:
    post = Lateshift("post", store=store_url)

    @post.on("order.*")
    def letter(order: Any) -> None: ...

    post.readers()[0].say()  # type: ignore[attr-defined]
    with pytest.raises(EventInvalid, match="cannot be written as JSON"):
        app.emit("order.placed", object())
    with pytest.raises(EventInvalid, match="over the limit"):
        app.emit("order.placed", "x" * (PAYLOAD_LIMIT + 1))
    assert jobs(app) == []
    post.close()


def test_two_triggers_of_one_task_need_names_of_their_own(app: Lateshift) -> None:
    @app.on("order.*")
    def tell(order: int) -> None: ...

    with pytest.raises(TriggerInvalid, match="another name="):
        app.on("customer.*")(tell)
    app.on("customer.*", name="tell of customers")(tell)
    assert set(app.triggers) == {"tell", "tell of customers"}


def test_a_task_without_parameters_or_of_another_app_is_refused(app: Lateshift) -> None:
    with pytest.raises(OptionInvalid, match="takes no argument"):

        @app.on("order.*")
        def nothing() -> None: ...

    other = Lateshift("other", store="memory://other")

    @other.task
    def theirs(order: int) -> None: ...

    with pytest.raises(OptionInvalid, match="not one of this app"):
        app.on("order.*")(theirs)


def test_a_unique_task_cannot_subscribe(app: Lateshift) -> None:
    @app.task(unique=True)
    def once(order: int) -> None: ...

    with pytest.raises(TriggerInvalid, match="unique"):
        app.on("order.*")(once)


def test_a_guarded_task_may_subscribe(app: Lateshift) -> None:
    @app.on("order.*")
    @app.task(limit=Limit(concurrency=1))
    def slowly(order: int) -> None: ...

    app.emit("order.placed", 1)
    [view] = app.store.reports.jobs(JobFilter(), 10)
    assert view.task == "slowly"


def test_another_programs_subscriber_keeps_its_session(store_url: str, app: Lateshift) -> None:
    post = Lateshift("post", store=store_url)

    @post.task
    def letter(order: int) -> None: ...

    post.on("order.*")(letter.options(session="letters", tenant="acme"))
    post.readers()[0].say()  # type: ignore[attr-defined]
    [id] = app.emit("order.placed", 1)
    view = app.store.reports.job(id)
    assert view is not None
    assert (view.session, view.tenant) == ("letters", "acme")
    post.close()
