"""What is to change in the arguments of jobs: some get new values, some are left out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lateshift.errors import OptionInvalid


def change_of(
    new: Mapping[str, Any] | None, unset: Sequence[str] | None
) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """A function from old arguments to new ones; None if nothing is to change."""
    values, unsets = dict(new or {}), unset or ()
    if both := [name for name in unsets if name in values]:
        raise OptionInvalid(f"Set {both[0]} or unset it, not both.", "unset")
    if not values and not unsets:
        return None
    return lambda old: {name: value for name, value in old.items() if name not in unsets} | values
