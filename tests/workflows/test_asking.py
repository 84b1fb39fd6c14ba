"""How a step is asked for: arguments are the function's, options the step's, and what could be either is refused."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from lateshift import Flow, Lateshift, State
from lateshift.errors import OptionInvalid, TaskInvalid, WorkflowInvalid
from lateshift.testing import Kit


def greet(greeting: str, *, name: str = "nobody", undo: str = "not at all") -> str:
    return f"{greeting} {name}, undone {undo}"


def run(app: Lateshift, kit: Kit, ask: Any) -> Any:
    """What the step that is asked for gives; or, if the run fails, why."""

    @app.workflow(name="asking")
    async def asking(flow: Flow) -> Any:
        return await ask(flow)

    job = asking.enqueue()
    kit.drain()
    if job.state is State.COMPLETED:
        return kit.result(job), [step.name for step in _view(app, job).steps]
    return _view(app, job).run.why


def _view(app: Lateshift, job: Any) -> Any:
    view = app.store.workflows.view(job.id)
    assert view is not None
    return view


@pytest.mark.parametrize("as_task", [False, True])
def test_an_option_that_the_function_has_for_a_parameter_is_refused_where_it_could_be_either(
    app: Lateshift, kit: Kit, as_task: bool
) -> None:
    what: Any = app.task(greet) if as_task else greet
    why = run(app, kit, lambda flow: flow.step(what, "hello", name="ann"))
    assert "name= is an option of the step, and greet has a parameter of that name" in why
    assert ("greet.call(…, name=…)" if as_task else "functools.partial(greet, name=…)") in why


@pytest.mark.parametrize("as_task", [False, True])
def test_a_partial_gives_the_function_its_own_and_the_option_is_the_steps(
    app: Lateshift, kit: Kit, as_task: bool
) -> None:
    what: Any = app.task(greet) if as_task else greet
    bound = partial(what, "hello", name="ann", undo="at once")
    done: list[str] = []

    def undo(greeting: str, name: str, undo: str) -> None:
        done.append(f"{greeting} {name} {undo}")

    result, names = run(app, kit, lambda flow: flow.step(bound, name="greet ann", undo=undo))
    assert (result, names) == ("hello ann, undone at once", ["greet ann"])


def test_what_a_partial_binds_is_recorded_and_its_undo_gets_it(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    def forget(greeting: str, name: str, result: str) -> None:
        done.append(f"forget {greeting} {name}: {result}")

    @app.workflow
    async def asking(flow: Flow) -> None:
        await flow.step(partial(greet, "hello", name="ann"), undo=forget)
        raise ValueError("no")

    job = asking.enqueue()
    kit.drain()
    assert done == ["forget hello ann: hello ann, undone not at all"]
    assert _view(app, job).steps[0].payload == b'{"args":["hello"],"kwargs":{"name":"ann"}}'


def test_a_task_is_given_its_own_by_a_call_with_options_or_without(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    task = app.task(greet)

    def forget(greeting: str, name: str) -> None:
        done.append(f"forget {greeting} {name}")

    @app.workflow
    async def asking(flow: Flow) -> str:
        await flow.step(task.call("hello", name="ann"), name="greet ann", undo=forget)
        await flow.step(task.options(queue="others").call("bye", name="bob"), name="greet bob", undo=forget)
        raise ValueError("no")

    job = asking.enqueue()
    kit.drain()
    assert [step.name for step in _view(app, job).steps] == ["greet ann", "greet bob"]
    assert done == ["forget bye bob", "forget hello ann"]


def test_a_call_has_all_its_arguments(app: Lateshift, kit: Kit) -> None:
    task = app.task(greet)
    why = run(app, kit, lambda flow: flow.step(task.call("hello"), "ann"))
    assert "has its arguments: give them all to call(…)" in why


def test_a_child_is_asked_for_in_the_same_way(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def child(flow: Flow, name: str) -> str:
        return f"hello {name}"

    assert "child.call(…, name=…)" in run(app, kit, lambda flow: flow.child(child, name="ann"))
    del app._tasks["asking"]
    result, names = run(app, kit, lambda flow: flow.child(child.call(name="ann"), name="greet ann"))
    assert (result, names) == ("hello ann", ["greet ann"])


def test_a_function_without_such_a_parameter_is_asked_for_as_ever(app: Lateshift, kit: Kit) -> None:
    result, names = run(app, kit, lambda flow: flow.step(max, 1, 2, name="largest"))
    assert (result, names) == (2, ["largest"])


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda flow: flow.step(print, 1, undo="x"), "undo= is a function or a task, such as undo=refund, not 'x'"),
        (lambda flow: flow.gather([flow.sleep(timedelta(0))]), "flow.gather(*steps), not a list"),
        (lambda flow: flow.gather(print), "flow.gather takes steps, or coroutines that make steps"),
    ],
)  # fmt: skip
def test_what_a_step_cannot_be_made_of_is_said(app: Lateshift, kit: Kit, ask: Any, says: str) -> None:
    @app.workflow
    async def order(flow: Flow) -> str:
        try:
            await ask(flow)
        except WorkflowInvalid as error:
            return str(error)
        return ""

    job = order.enqueue()
    kit.drain()
    assert says in (kit.result(job) or "")


def test_the_flow_is_the_first_parameter_of_a_workflow(app: Lateshift) -> None:
    async def named(order: int, flow: Flow) -> None: ...

    async def typed(order: int, its: Flow) -> None: ...

    for body in (named, typed):
        with pytest.raises(TaskInvalid, match="the flow as its first parameter, which is order"):
            app.workflow(body)  # type: ignore[arg-type, call-overload, unused-ignore]


@pytest.mark.parametrize("option", ["session", "time_limit", "retry"])
def test_an_option_that_only_tasks_have_is_refused_by_a_workflow(app: Lateshift, option: str) -> None:
    options: dict[str, Any] = {option: None}
    with pytest.raises(OptionInvalid, match=f"A workflow has no {option}="):
        app.workflow(**options)


@pytest.mark.parametrize("as_undo", [False, True])
def test_a_task_of_another_app_is_refused(app: Lateshift, kit: Kit, as_undo: bool) -> None:
    @Lateshift("elsewhere", store="memory://elsewhere").task
    def wave(to: str) -> None: ...

    if as_undo:
        why = run(app, kit, lambda flow: flow.step(lambda to: None, "ann", name="wave", undo=wave))
    else:
        why = run(app, kit, lambda flow: flow.step(wave.options(priority=3), "ann"))
    assert "wave is a task of another app" in why
    assert "a function that calls wave.enqueue(…)" in why


def test_a_workflow_of_another_app_is_no_child(app: Lateshift, kit: Kit) -> None:
    @Lateshift("elsewhere", store="memory://elsewhere").workflow
    async def ship(flow: Flow) -> None: ...

    assert "ship is a task of another app" in run(app, kit, lambda flow: flow.child(ship))
