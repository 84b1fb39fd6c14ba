"""For tests of your own project: a store in memory, time travel, assertions, and crash-at-every-step. Without pytest, which
only `plugin` imports."""

from lateshift.testing.crashes import crash_everywhere, survives_crashes
from lateshift.testing.effects import Effects
from lateshift.testing.kit import Kit, assert_enqueued, assert_not_enqueued, enqueued, testing
from lateshift.testing.ledger import Ran, Sent
from lateshift.testing.report import Point, Report, Run
from lateshift.testing.shift import ProcessDeath

__all__ = [
    "Effects",
    "Kit",
    "Point",
    "ProcessDeath",
    "Ran",
    "Report",
    "Run",
    "Sent",
    "assert_enqueued",
    "assert_not_enqueued",
    "crash_everywhere",
    "enqueued",
    "survives_crashes",
    "testing",
]
