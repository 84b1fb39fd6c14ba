"""Whether a chain can be a pipeline: each filter takes what the one before it returns. Found when it is built, before any item is lost."""

from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from msgspec import Struct

from lateshift.errors import PipelineInvalid
from lateshift.model.arguments import hints_of
from lateshift.model.pipeline.chain import Chain, FanIn, FanOut, Filter, Part
from lateshift.model.pipeline.fits import element_of, fits, list_of, shown

PARTS_MOST = 100  # filters and fan_outs of one pipeline, those inside of fan_outs too
ITEMS = "items"  # the parameter of a pipeline that begins with a fan_out

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Built(Struct, frozen=True):
    """What a pipeline takes and gives: the parameters of its items, their types, and the type of its result."""

    parameters: Sequence[Parameter]
    hints: Mapping[str, Any]
    result: Any


def build(name: str, chain: Chain[..., Any], tasks: Mapping[str, Any]) -> Built:
    """Raises PipelineInvalid. `tasks`: of the app, by name."""
    if not chain.parts:
        raise PipelineInvalid(
            f"The pipeline {name} has no filter: app.pipeline(parse | enrich) takes tasks joined with |."
        )
    if (count := _count(chain.parts)) > PARTS_MOST:
        raise PipelineInvalid(
            f"The pipeline {name} has {count} parts, over the limit of {PARTS_MOST}. Let a part of it be a pipeline of its own: that may "
            "be a filter, too."
        )
    for filter in chain.filters():
        _refuse(name, filter, tasks)
    result = _through(name, chain.parts, Parameter.empty, "", first=True)
    return Built(*_taken(chain.parts[0]), result)


def parameter_of(task: Any) -> str:
    """The parameter that gets the value. Raises PipelineInvalid."""
    wanted = list(signature(task.function).parameters.values())
    if not wanted or wanted[0].kind not in _POSITIONAL:
        raise PipelineInvalid(
            f"{task.name} takes nothing that a filter could be given: its first parameter is the value that comes from the filter before it."
        )
    needed = [each.name for each in wanted[1:] if each.default is Parameter.empty]
    if needed:
        raise PipelineInvalid(
            f"{task.name} gets one value, {wanted[0].name}, from the filter before it, and needs {', '.join(needed)} too: give "
            f"{'that' if len(needed) == 1 else 'those'} a default, or let the filter before it return all in one value."
        )
    return wanted[0].name


def _count(parts: Sequence[Part]) -> int:
    return sum(1 + (_count(part.inner.parts) if isinstance(part, FanOut) else 0) for part in parts)


def _refuse(name: str, filter: Filter, tasks: Mapping[str, Any]) -> None:
    if tasks.get(filter.name) is not filter.task:
        raise PipelineInvalid(
            f"The pipeline {name}: {filter.name} is a task of another app. A pipeline is made of the tasks of its own."
        )
    if getattr(filter.work, "is_numbered", False):
        raise PipelineInvalid(
            f"The pipeline {name}: {filter.name} has a sequence=, which only one item can have. Leave it out."
        )
    if getattr(filter.work, "connection", None) is not None:
        raise PipelineInvalid(
            f"The pipeline {name}: {filter.name} has a connection=, but its jobs are enqueued by workers. Leave it out; to put items in "
            "with a transaction of yours, pipeline.options(connection=…)."
        )


def _through(name: str, parts: Sequence[Part], given: Any, giver: str, *, first: bool = False) -> Any:
    """The type of what comes out at the end. `giver`: the filter from which the value comes, empty at the beginning."""
    before: Part | None = None
    for number, part in enumerate(parts):
        begins = first and number == 0
        match part:
            case FanOut():
                given = _fanned(name, part, given, giver, begins=begins)
            case FanIn():
                if not isinstance(before, FanOut):
                    raise PipelineInvalid(
                        f"The pipeline {name}: fan_in({part.filter}) has no fan_out right before it. After any other filter, write the task "
                        f"itself: … | {part.filter}."
                    )
                given = _passed(name, part.filter, given, giver)
                giver = part.filter.name
            case Filter():
                given = _result(part) if begins else _passed(name, part, given, giver)
                giver = part.name
        if isinstance(part, FanOut):
            giver = str(part)
        before = part
    return given


def _fanned(name: str, part: FanOut[Any], given: Any, giver: str, *, begins: bool) -> Any:
    if begins:
        element, giver = Any, ""
    elif (element := element_of(given)) is Parameter.empty:
        raise PipelineInvalid(
            f"The pipeline {name} does not fit together: fan_out takes a list, and {giver} returns {shown(given)}. Let {giver} return a list, "
            f"such as list[{shown(given)}], or join {part.inner} without fan_out."
        )
    if not part.inner.parts:
        raise PipelineInvalid(
            f"The pipeline {name}: a fan_out has no filter: fan_out(enrich), or fan_out(enrich | resize)."
        )
    result = _through(name, part.inner.parts, element, giver and f"each element of what {giver} returns")
    return list_of(result)


def _passed(name: str, filter: Filter, given: Any, giver: str) -> Any:
    """What this filter returns, if it takes what it is given."""
    task = filter.task
    try:
        parameter = parameter_of(task)
    except PipelineInvalid as error:
        raise PipelineInvalid(f"The pipeline {name}: {error}") from None
    wanted = hints_of(task.name, task.function).get(parameter, Parameter.empty)
    if giver and not fits(given, wanted):
        verb = "is" if giver.startswith("each element") else "returns"
        raise PipelineInvalid(
            f"The pipeline {name} does not fit together: {giver} {verb} {shown(given)}, and {filter.name}, which comes next, takes "
            f"{parameter}: {shown(wanted)}. Change one of the two annotations, or put a filter between them that makes the one of the other."
        )
    return _result(filter)


def _result(filter: Filter) -> Any:
    return hints_of(filter.name, filter.task.function).get("return", Parameter.empty)


def _taken(part: Part) -> tuple[Sequence[Parameter], Mapping[str, Any]]:
    """The parameters of the first filter, and their types; of a fan_out one list."""
    if isinstance(part, Filter):
        hints = hints_of(part.name, part.task.function)
        parameters = list(signature(part.task.function).parameters.values())
        return parameters, {each.name: hints[each.name] for each in parameters if each.name in hints}
    assert isinstance(part, FanOut)
    inner = part.inner.parts[0]
    if isinstance(inner, Filter):
        element = hints_of(inner.name, inner.task.function).get(parameter_of(inner.task), Any)
    else:
        element = list[Any]
    return [Parameter(ITEMS, Parameter.POSITIONAL_OR_KEYWORD)], {ITEMS: list_of(element)}
