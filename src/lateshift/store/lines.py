"""Which queues a worker serves, and which lines the rows of a store name."""

import logging
from collections.abc import Iterable

from lateshift.model.job import Lane, Line
from lateshift.model.member import served

__all__ = ["LANES", "lane_of", "lines_there", "served"]

LANES = tuple(Lane)
_BY_CODE = {int(lane): lane for lane in Lane}
_strange: set[object] = set()  # codes that were told of: once each, though they are met every second

log = logging.getLogger("lateshift")


def lane_of(code: int) -> Lane | None:
    """None for one that this release does not know. A later one may have written it, or whoever may write rows."""
    return _BY_CODE.get(code)


def lines_there(rows: Iterable[tuple[str, int]]) -> list[Line]:
    """The lines that these rows name, each once. Jobs in a lane that is not known are left for workers that know it, and told of: they hold
    up nobody else."""
    found: list[Line] = []
    for queue, code in dict.fromkeys(rows):
        lane = lane_of(code)
        if lane is not None:
            found.append(Line(queue, lane))
        elif code not in _strange:
            _strange.add(code)
            log.warning(
                "jobs in the lane %r, as in the queue %.100s, are left alone: this release does not know it",
                code,
                queue,
            )
    return found
