"""Filters joined by `|`: a value to look at and to walk through. Nothing runs here, and nothing is checked but that a filter is one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Never, NoReturn, ParamSpec, TypeAlias, TypeVar

from lateshift.errors import OptionInvalid, PipelineInvalid

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

NAME_SHOWN = 60  # characters of what is no filter


class Joins(Generic[P, R]):
    """What `|` joins: a task, a task with options, `fan_out(…)`, `fan_in(…)`, or a chain of them."""

    def parts_of_chain(self) -> "tuple[Part, ...]":
        """A task, or one with options, is one filter."""
        return (Filter(self),)

    def __or__(self, other: "Joins[..., S]") -> "Chain[P, S]":
        if not isinstance(other, Joins):
            raise _no_filter(other)
        return Chain((*self.parts_of_chain(), *other.parts_of_chain()))

    def __ror__(self, other: object) -> NoReturn:
        raise _no_filter(other)


@dataclass(frozen=True)
class Filter:
    """One task of a chain, with its options if it has some."""

    work: Any  # a Task, or a Bound

    @property
    def task(self) -> Any:
        return getattr(self.work, "task", self.work)

    @property
    def name(self) -> str:
        name: str = self.task.name
        return name

    @property
    def queue(self) -> str:
        """Where its jobs go."""
        with_options = self.work is not self.task
        queue: str = self.work.spec.queue if with_options else self.task.limits.queue
        return queue

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class FanOut(Joins[..., list[R]]):
    """`fan_out(enrich | resize)`: the chain inside runs for each element of a list."""

    inner: "Chain[..., R]"
    at_once: int | None = None

    def parts_of_chain(self) -> "tuple[Part, ...]":
        return (self,)

    def __str__(self) -> str:
        return f"fan_out({self.inner})"


@dataclass(frozen=True)
class FanIn(Joins[..., R]):
    """`fan_in(total)`: one task gets the list of what a fan_out gave, in the order of its elements."""

    filter: Filter

    def parts_of_chain(self) -> "tuple[Part, ...]":
        return (self,)

    def __str__(self) -> str:
        return f"fan_in({self.filter})"


Part: TypeAlias = Filter | FanOut[Any] | FanIn[Any]


@dataclass(frozen=True)
class Chain(Joins[P, R]):
    """`parse | enrich | store`. `parts`: what stands in it, in order."""

    parts: tuple[Part, ...]

    def parts_of_chain(self) -> tuple[Part, ...]:
        return self.parts

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))

    def filters(self) -> Iterator[Filter]:
        """Every filter, in order, those inside a fan_out too."""
        for part in self.parts:
            match part:
                case FanOut():
                    yield from part.inner.filters()
                case FanIn():
                    yield part.filter
                case Filter():
                    yield part

    def edges(self) -> list[tuple[Filter, Filter]]:
        """Which filter's results become whose jobs."""
        return _edges(self.parts, ())[0]

    def ends(self) -> tuple[Filter, ...]:
        """The filters from which the result comes."""
        return _edges(self.parts, ())[1]


def fan_out(chain: Joins[..., R], *more: Never, at_once: int | None = None) -> FanOut[R]:
    """In a pipeline: run this, a task or a chain of them, for each element of the list that comes in. What follows gets the list of
    their results, in the order of the elements. `at_once`: how many elements of one item may be under way; without it FAN_OUT_AT_ONCE, and no
    more than the queue of the first task may hold."""
    if more:
        raise several("fan_out", (chain, *more))
    if at_once is not None and (type(at_once) is not int or at_once < 1):
        raise OptionInvalid(f"at_once is a number of elements, 1 or more, not {at_once!r}.")
    return FanOut(chain_of(chain), at_once)


def fan_in(reduce: Joins[..., R], *more: Never) -> FanIn[R]:
    """In a pipeline, after a fan_out: this task gets the list of its results."""
    if more:
        raise several("fan_in", (reduce,))
    parts = chain_of(reduce).parts
    if len(parts) != 1 or not isinstance(parts[0], Filter):
        raise PipelineInvalid(
            f"fan_in takes one task, which gets the list of results: fan_in(total), not {reduce!s}. What comes after it is joined with |."
        )
    return FanIn(parts[0])


def chain_of(joined: Any) -> Chain[Any, Any]:
    """The chain of whatever may be joined. Raises PipelineInvalid."""
    if not isinstance(joined, Joins):
        raise _no_filter(joined)
    return joined if isinstance(joined, Chain) else Chain(joined.parts_of_chain())


def several(taker: str, given: Sequence[Any]) -> PipelineInvalid:
    """Of one that was given several things where it takes one."""
    meant = " | ".join(str(getattr(each, "name", None) or each)[:NAME_SHOWN] for each in given)
    what = "one task" if taker == "fan_in" else "one chain, joined with |"
    return PipelineInvalid(f"{taker} takes {what}: {taker}({meant}).")


def _edges(
    parts: Sequence[Part], before: tuple[Filter, ...]
) -> tuple[list[tuple[Filter, Filter]], tuple[Filter, ...]]:
    found: list[tuple[Filter, Filter]] = []
    for part in parts:
        if isinstance(part, FanOut):
            inner, before = _edges(part.inner.parts, before)
            found += inner
            continue
        filter = part.filter if isinstance(part, FanIn) else part
        found += [(each, filter) for each in before]
        before = (filter,)
    return found, before


def _no_filter(thing: Any) -> PipelineInvalid:
    made = getattr(getattr(thing, "task", None), "name", None)
    if made is not None:
        return PipelineInvalid(
            f"{made}.call(…) has its arguments already, and a filter gets what the one before it returns: give the task itself, {made}."
        )
    name = getattr(thing, "__name__", None) or repr(thing)
    name = name if len(name) <= NAME_SHOWN else f"{name[: NAME_SHOWN - 1]}…"
    if callable(thing):
        return PipelineInvalid(
            f"{name} is no task, so it cannot be a filter of a pipeline: register it with @app.task."
        )
    return PipelineInvalid(
        f"{name} cannot be a filter of a pipeline. Filters are tasks, joined with |: parse | enrich | store, fan_out(…) and fan_in(…)."
    )
