"""Files that come, change, go, move and come again in any order, readers that start anew at any time: beside a model that knows
which of them must be one job, and which must not."""

import itertools
import shutil
import tempfile
from enum import Enum
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from lateshift.clock import ManualClock
from lateshift.model.triggering.sources import FileSource
from lateshift.triggers.files import Files
from tests.unit.receiving import Kept, Told, Turning

NAMES = [f"{folder}{name}.csv" for folder in ("", "x/", "x/y/") for name in "ab"]
name = st.sampled_from(NAMES)


class Must(Enum):
    """Whether a file, as it is, becomes a job from now on."""

    YES = "yes"
    NO = "no"
    MAY = "may"  # it was away for a while, and nobody can say whether that was seen


class Inbox(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="lateshift-model-"))
        self.inbox, self.away = self.root / "inbox", self.root / "away"
        for folder in (self.inbox, self.away):
            (folder / "x" / "y").mkdir(parents=True)
        self.clock = ManualClock()
        self.told = Told()
        self.content = itertools.count(1)
        self.must: dict[str, Must] = {}  # of those that are there, or away
        self.kept = Kept()
        self.turning = self.started(None)

    def teardown(self) -> None:
        self.turning.source.close()
        shutil.rmtree(self.root)

    def started(self, position: bytes | None) -> Turning:
        source = Files(FileSource(pattern=f"{self.inbox}/**/*.csv"), self.clock, self.told)
        return Turning(source, self.kept, position)

    @rule()
    def restart(self) -> None:
        self.turning.source.close()
        self.told.take()  # nobody hears
        self.turning = self.started(self.turning.position)

    @rule(name=name)
    def write(self, name: str) -> None:
        """A new file, or another version of one."""
        (self.away / name).unlink(missing_ok=True)
        (self.inbox / name).write_text("x" * next(self.content))
        self.must[name] = Must.YES

    @rule(name=name)
    def delete(self, name: str) -> None:
        for folder in (self.inbox, self.away):
            (folder / name).unlink(missing_ok=True)
        self.must.pop(name, None)

    @rule(name=name)
    def move(self, name: str) -> None:
        """Away, or back as it was."""
        source, target = (self.inbox, self.away) if (self.inbox / name).exists() else (self.away, self.inbox)
        if (source / name).exists():
            (source / name).rename(target / name)

    @rule(names=st.sets(name), folder=st.booleans(), more=st.booleans())
    def hint(self, names: set[str], folder: bool, more: bool) -> None:
        """Perhaps wrong, perhaps late: nothing depends on it."""
        self.told.paths |= {str(self.inbox / name) for name in names}
        self.told.paths |= {str(self.inbox / "x")} if folder else set()
        self.told.more |= more

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.1, 31.0]), limit=st.sampled_from([1, 500]))
    def look(self, seconds: float, limit: int) -> None:
        for name in self.must:
            if self.must[name] is Must.NO and not (self.inbox / name).exists():
                self.must[name] = Must.MAY
        self.clock.move(seconds=seconds)
        self.take(self.turning.read(limit))

    @rule()
    def rest(self) -> None:
        """All that is there is scanned, and whole; all that is not is missed."""
        for _ in range(4):
            self.clock.move(seconds=31)
            self.take(self.turning.quiet(3))
        for name in self.must:
            if (self.inbox / name).exists():
                assert self.must[name] is not Must.YES, f"{name} is lost"
                self.must[name] = Must.NO
            else:
                self.must[name] = Must.YES  # when it comes back
        assert set(self.kept.marks) == {
            str(self.inbox / name) for name in NAMES if (self.inbox / name).exists()
        }

    def take(self, paths: list[str]) -> None:
        for path in paths:
            name = str(Path(path).relative_to(self.inbox))
            assert self.must[name] is not Must.NO, f"{name} is doubled"
            self.must[name] = Must.NO


def test_files_in_any_order_of_events_are_one_job_each() -> None:
    run_state_machine_as_test(
        Inbox, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )
