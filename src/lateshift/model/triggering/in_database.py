"""What a database itself makes of a row that changes. Plain data."""

from msgspec import Struct

from lateshift.model.job import Spec


class RowTrigger(Struct, frozen=True, kw_only=True):
    """A job with this spec for each new value of `cursor`; its one argument is the row, or the whole RowChange."""

    name: str
    url: str
    table: str
    cursor: str
    key: str
    spec: Spec
    parameter: str
    whole: bool
