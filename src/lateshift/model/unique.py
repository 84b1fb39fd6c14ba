"""Which calls of a task are one job: the rule that a task or a call names. Who is there already is judged by the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.arguments import Arguments
from lateshift.model.job import Identity, Scope

While: TypeAlias = Literal["waiting", "unsettled"]

_SCOPES = {None: Scope.NONE, "waiting": Scope.WAITING, "unsettled": Scope.UNSETTLED}
_NO_TIME = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """`Unique(by=("user_id",))`: one job at a time for each user. A duplicate gives the job that is there.

    `by`: the arguments that make two calls the same; all of them where none are named. `while_`: a job stands for its
    duplicates while it is "waiting" (scheduled, ready or blocked), or as long as it is "unsettled" (or runs). `window`: for
    so long from its enqueue, whatever became of it; but a cancelled job stands for nothing. With both, either is enough;
    with neither, it is as long as it is unsettled.
    """

    by: Sequence[str] = ()
    while_: While | None = None
    window: timedelta | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by, str) or not all(isinstance(name, str) for name in self.by):
            raise OptionInvalid(f'by is a tuple of argument names, such as ("user_id",), not {self.by!r}.')
        object.__setattr__(self, "by", tuple(self.by))
        if self.while_ not in (None, *get_args(While)):
            raise OptionInvalid(f'while_ is "waiting" or "unsettled", not {self.while_!r}.')
        if self.window is not None and checks.duration("window", self.window) <= _NO_TIME:
            raise OptionInvalid("The window of Unique must be longer than nothing.")
        if self.while_ is None and self.window is None:
            object.__setattr__(self, "while_", "unsettled")

    def identity(self, arguments: Arguments, payload: bytes, queue: str = "") -> Identity:
        """Of one call. With a queue, the same call in another queue is another."""
        digest = arguments.identity(payload, self.by, queue)
        return Identity(digest, _SCOPES[self.while_], self.window or _NO_TIME)


Uniqueness: TypeAlias = Unique | bool | None
"""What a task or a call says: a rule; True for Unique(); False for none, whatever the task or the queue says; None for what
they say."""


def rule_of(task: str, value: Any, names: Sequence[str]) -> Unique | Literal[False] | None:
    """Checked against the parameters of the task. True is the plain rule."""
    if value is True:
        return Unique()
    if value is None or value is False:
        return value
    if not isinstance(value, Unique):
        raise OptionInvalid(f'{task}: unique is a Unique, such as Unique(by=("user_id",)), not {value!r}.')
    for name in value.by:
        if name not in names:
            raise OptionInvalid(
                f"{task}: unique by {name!r}, which it does not take. It takes ({', '.join(names)})."
            )
    return value
