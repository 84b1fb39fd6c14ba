"""What became of a task that was killed everywhere, as a table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("", "point", "side effects", "jobs")


@dataclass(frozen=True, slots=True)
class Point:
    """A moment in a run: `step` is such as `checkpoint 2 of import_rows`; `how` is what happens there."""

    how: str
    step: str

    def __str__(self) -> str:
        return f"{self.how} {self.step}"


UNHARMED = Point("nothing is killed", "")


@dataclass(frozen=True, slots=True)
class Run:
    """What was seen in one run: how often each effect happened, and how each job ended."""

    point: Point
    effects: Counter[str]
    ended: tuple[str, ...]
    reached: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """`safe` if every run did what the unharmed one did. `str(report)` is a table with a line for each run."""

    what: str
    unharmed: Run
    runs: Sequence[Run]
    at_most_once: bool = False

    @property
    def safe(self) -> bool:
        return not self.unsafe

    @property
    def unsafe(self) -> list[Run]:
        return [run for run in self.runs if self.faults(run)]

    def faults(self, run: Run) -> list[str]:
        """What happened too often or not at all, and jobs that ended otherwise."""
        expected = self.unharmed.effects
        faults = []
        for effect in dict.fromkeys([*expected, *run.effects]):
            found = run.effects[effect]
            if found > expected[effect] or (found < expected[effect] and not self.at_most_once):
                meant = "" if expected[effect] == 1 else f", not {times(expected[effect])}"
                faults.append(f"{effect} {times(found)}{meant}")
        if run.ended != self.unharmed.ended and not self.at_most_once:
            faults.append(f"ended {', '.join(run.ended)}")
        return faults

    def __str__(self) -> str:
        verdict = f"safe at all {len(self.runs)} points"
        if self.unsafe:
            verdict = f"not safe at {len(self.unsafe)} of {len(self.runs)} points"
        rows = [HEAD, *(self._row(run) for run in [self.unharmed, *self.runs])]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
        rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-" * widths[3]))
        lines = [
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows
        ]
        return "\n".join([f"{self.what} is {verdict}.", "", *(line.rstrip() for line in lines)])

    def _row(self, run: Run) -> tuple[str, str, str, str]:
        point = str(run.point).strip()
        if run is self.unharmed:
            effects = ", ".join(f"{effect} {times(count)}" for effect, count in run.effects.items())
            return "", point, effects, ", ".join(run.ended)
        faults = [fault for fault in self.faults(run) if not fault.startswith("ended ")]
        said = ", ".join(faults) or ("the same" if run.reached else "the same (it did not get there)")
        return "!" if self.faults(run) else "", point, said, ", ".join(run.ended)


def times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
