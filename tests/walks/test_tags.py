"""Tags, and which job enqueued which: as callers say them, on every way into the store."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lateshift import Flow, JobFilter, Lateshift
from lateshift.errors import OptionInvalid
from lateshift.model.tags import TAG_LIMIT, TAGS_LIMIT
from lateshift.operating.written import length, moment
from lateshift.testing import Kit, testing
from tests.walks.commands import Cli

NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)


@pytest.fixture
def kit(store_url: str) -> Iterator[Kit]:
    app = Lateshift("tags", store=store_url)

    @app.task(tags=["mail"])
    def greet(name: str) -> None: ...

    @app.task
    def invite(names: list[str]) -> None:
        for name in names:
            greet.enqueue(name)
        app.enqueue_many(greet.call(name) for name in names)
        app.batch([greet.call("all")])

    @app.task
    async def ainvite(name: str) -> None:
        await greet.aenqueue(name)

    @app.workflow
    async def party(flow: Flow, name: str) -> Any:
        return await flow.step(greet.options(tags=["step"]), name)

    app.schedule(greet.options(tags=["daily"]), args=["Ada"], name="hello", cron="0 0 * * *")
    app.on("met")(greet.options(tags=["met"]))
    with testing(app, store=store_url) as kit:
        yield kit


def tags(kit: Kit, **wanted: Any) -> list[tuple[str, ...]]:
    return [view.tags for view in kit.app.store.reports.jobs(JobFilter(**wanted), 10)]


def test_a_call_has_the_tags_of_its_task_and_its_own(kit: Kit) -> None:
    greet = kit.app.tasks["greet"]
    greet.enqueue("Ada")
    greet.options(tags=["vip", "eu", "vip"]).enqueue("Bob")
    kit.app.enqueue_many([greet.options(tags={"us"}).call("Cyd")])
    kit.app.batch([greet.options(tags=("b",)).call("Dan")])

    assert set(tags(kit)) == {("b", "mail"), ("mail", "us"), ("eu", "mail", "vip"), ("mail",)}
    assert len(kit.app.store.reports.jobs(JobFilter(tag="mail"), 10)) == 4


def test_steps_schedules_and_events_have_tags_too(kit: Kit) -> None:
    kit.app.tasks["party"].enqueue("Ada")
    kit.app.emit("met", "Bob")
    kit.drain()

    assert tags(kit, tag="step") == [("mail", "step")]
    assert tags(kit, tag="met") == [("mail", "met")]
    kit.travel(days=1)
    assert tags(kit, tag="daily")[0] == ("daily", "mail")


def test_what_an_attempt_enqueues_knows_its_parent_but_not_what_a_batch_has(kit: Kit) -> None:
    invite = kit.app.tasks["invite"].enqueue(["Ada", "Bob"])
    kit.drain()
    children = kit.app.store.reports.jobs(JobFilter(task="greet"), 10)

    assert len(children) == 5
    assert sorted(str(view.parent) for view in children) == [str(invite.id)] * 4 + ["None"]
    kin = kit.app.store.reports.kin(invite.id, 10)
    assert {each.id for each in kin.descendants} == {view.id for view in children if view.parent}
    assert invite.view().parent is None


def test_a_coroutine_is_a_parent_too(kit: Kit) -> None:
    job = kit.app.tasks["ainvite"].enqueue("Ada")
    kit.drain()

    [child] = kit.app.store.reports.jobs(JobFilter(task="greet"), 10)
    assert child.parent == job.id


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("eu", "tags is a list of texts"),
        (7, "tags is a list of texts"),
        ([7], "a tag is text"),
        ([""], f"a tag must have 1 to {TAG_LIMIT} characters"),
        (["x" * (TAG_LIMIT + 1)], f"a tag must have 1 to {TAG_LIMIT} characters"),
        ([str(number) for number in range(TAGS_LIMIT + 1)], f"at most {TAGS_LIMIT} tags"),
        (["\0"], "cannot be stored"),
    ],
)
def test_tags_that_cannot_be_are_refused_where_they_are_given(kit: Kit, wrong: Any, why: str) -> None:
    with pytest.raises(OptionInvalid, match=why):
        kit.app.tasks["invite"].options(tags=wrong)
    with pytest.raises(OptionInvalid, match=why):
        kit.app.task(tags=wrong)


def test_the_tags_of_a_task_and_a_call_are_no_more_than_the_limit_together(kit: Kit) -> None:
    most = [str(number) for number in range(TAGS_LIMIT)]
    with pytest.raises(OptionInvalid, match=f"at most {TAGS_LIMIT} tags, not {TAGS_LIMIT + 1}"):
        kit.app.tasks["greet"].options(tags=most)


def test_the_command_line_finds_jobs_by_all_of_it(
    kit: Kit, cli: Cli, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATESHIFT_STORE", store_url)
    greet = kit.app.tasks["greet"]
    job = greet.options(tags=["vip"], key="ada").enqueue("Ada")
    greet.enqueue("Bob")
    for option in (
        ["--tag", "vip"], ["--argument", "Ada"], ["--argument", "name=Ada"], ["--key", "ada"],
        ["--since", "1h", "--tag", "vip"], ["--until", "2199-01-01", "--tag", "vip"],
    ):  # fmt: skip
        said = cli("jobs", "list", *option, "--json").document
        assert [each["id"] for each in said["jobs"]] == [str(job.id)], option
        assert said["jobs"][0]["tags"] == ["mail", "vip"]
    assert cli("jobs", "list", "--error", "boom").out == "No jobs with error boom.\n"
    assert cli("jobs", "list", "--since", "soon").code == 2
    assert "mail, vip" in cli("jobs", "show", str(job.id)).out


def test_a_moment_is_so_long_ago_or_a_time() -> None:
    assert moment("since", None, NOW) is None
    assert moment("since", "1h30m", NOW) == NOW - timedelta(minutes=90)
    assert moment("since", "2 d", NOW) == NOW - timedelta(days=2)
    assert moment("since", "1.5h", NOW) == NOW - length("1.5h") == NOW - timedelta(minutes=90)
    assert moment("since", "2026-01-01", NOW) == datetime(2026, 1, 1, tzinfo=UTC)
    assert moment("since", "2026-01-01T09:00+02:00", NOW) == datetime(2026, 1, 1, 7, tzinfo=UTC)
    for wrong in ("", "soon", "5", "5 weeks", "999999d999999d999999d", "2026-13-01"):
        with pytest.raises(OptionInvalid, match="is no moment"):
            moment("since", wrong, NOW)
