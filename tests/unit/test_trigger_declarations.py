"""What can never work is refused where it is written, with what to do."""

from collections.abc import Callable
from typing import Any

import pytest

from lateshift import FileChange, Lateshift, Message
from lateshift.errors import OptionInvalid, TaskInvalid, TriggerInvalid
from lateshift.model.triggering.trigger import BY_DATABASE


@pytest.fixture
def app() -> Lateshift:
    return Lateshift("shop", store="memory://declarations")


def test_a_name_to_which_no_address_would_lead_is_refused(app: Lateshift) -> None:
    with pytest.raises(OptionInvalid, match="one line of printable characters"):

        @app.on_file("inbox/*.csv", name="in\nbox")
        def load(path: str) -> None: ...


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda app: app.on_file("inbox/"), "names a folder. Say which files in it"),
        (lambda app: app.on_file("s3://bucket"), "Say which, such as s3://bucket/in/"),
        (lambda app: app.on_file("s3://bucket/in/"), "names a folder"),
        (lambda app: app.on_file("inbox/[ab.csv"), "a \\[ is never closed"),
        (lambda app: app.on_file("inbox/[]"), "a \\[ is never closed"),
        (lambda app: app.on_file("s3://bucket/[!ab"), "write \\[\\[\\] for the character itself"),
        (lambda app: app.on_file("inbox/*", options={"region": "eu"}), "Leave options= out"),
        (lambda app: app.on_message("redi://host", "q"), "Did you mean redis://"),
        (lambda app: app.on_message("ampq://a:secret@host", "q"), "Did you mean amqp://"),
        (lambda app: app.on_message("amqp://host", "q", key=5), "key= is the name of a field"),
        (lambda app: app.on_message("amqp://host", "q", key=""), "key= is the name of a field"),
        (lambda app: app.on_row("sqlit:///x.db", table="t", cursor="id"), "Did you mean sqlite://"),
        (lambda app: app.on_row("postgressql+psycopg://h/d", table="t", cursor="id"), "Did you mean postgresql://"),
    ],
)  # fmt: skip
def test_what_can_never_work_is_refused_at_once(
    app: Lateshift, declare: Callable[[Lateshift], Any], told: str
) -> None:
    with pytest.raises(TriggerInvalid, match=told) as refused:
        declare(app)
    assert "secret" not in str(refused.value)


def test_what_a_package_may_bring_is_left_to_whoever_opens_it(app: Lateshift) -> None:
    app.on_row("snowflake://host/shop", table="t", cursor="id")
    app.on_row("mysql+pymysql://host/shop", table="t", cursor="id")
    app.on_message("sqs://", "q")
    app.on_message("azurestoragequeues://key@account", "q")
    app.on_message("my.own.transport:Transport://host", "q")
    app.on_file("inbox/[[]draft[]]/[!a]*.csv", options={})


def test_where_the_database_writes_the_jobs_is_told_with_where_it_looks(app: Lateshift) -> None:
    @app.on_row("postgresql://ana:secret@host/shop", table="orders", cursor="id", by="database")
    def ship(order: dict[str, int]) -> None: ...

    assert app.triggers["ship"].declared.about == f"postgresql://host/shop table orders{BY_DATABASE}"


def test_a_task_above_its_trigger_is_told_to_stand_below(app: Lateshift) -> None:
    @app.on_file("inbox/*.csv")
    @app.task(queue="files")
    def load(path: str) -> None: ...

    with pytest.raises(TaskInvalid, match=r"Write @app\.task below the others, next to the function"):

        @app.task(queue="files")
        @app.on_file("outbox/*.csv")
        def send(path: str) -> None: ...

    with pytest.raises(TaskInvalid, match="load is a task already"):
        app.task(load.options(priority=3))  # type: ignore[call-overload]


def test_why_a_task_cannot_take_what_its_trigger_gives_is_told(app: Lateshift) -> None:
    @app.on_file("inbox/*.csv")
    def number(path: int) -> None: ...

    @app.on_file("inbox/*.csv")
    def message(told: Message) -> None: ...

    @app.on_row("sqlite:///x.db", table="t", cursor="id")
    def row(text: list[str]) -> None: ...

    @app.on_file("inbox/*.csv", name="decoded", decode=lambda change: change.size)
    def decoded(size: int) -> None: ...

    @app.on_file("inbox/*.csv")
    def change(change: FileChange) -> None: ...

    @app.on_message("amqp://host", "q")
    def anything(body: list[int]) -> None: ...

    assert {name: trigger.misfit for name, trigger in app.triggers.items()} == {
        "number": "path is annotated int, and this trigger gives a path, or a FileChange.",
        "message": "told is annotated Message, and this trigger gives a FileChange, or its content.",
        "row": "text is annotated list[str], and this trigger gives a row, a dict, or a RowChange.",
        "decoded": None, "change": None, "anything": None,
    }  # fmt: skip
