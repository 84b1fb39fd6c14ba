"""Whose turn it is among the elements of a fan_out, so that a long list does not fill the queue behind it at once."""

from collections.abc import Collection, Iterable, Iterator


class Turns:
    """Of one fan_out of an item, wherever it runs: at most so many of its elements are under way at once, in the order of the list. Nothing
    of it is kept: who is under way is read from the steps, so a worker that goes on after a crash finds the same."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._begun: set[str] = set()
        self._waiting: dict[str, None] = {}

    @property
    def waiting(self) -> Collection[str]:
        """The branches of elements that have not begun."""
        return self._waiting.keys()

    def wait(self, branch: str) -> None:
        self._waiting[branch] = None

    def begin(self, branch: str) -> None:
        self._waiting.pop(branch, None)
        self._begun.add(branch)

    def leave(self, branch: str) -> None:
        self._waiting.pop(branch, None)
        self._begun.discard(branch)

    def give(self, busy: Collection[str]) -> list[str]:
        """Let the next ones begin; gives their branches. `busy`: where something is under way; one that is held is not, and takes no
        turn from others."""
        room = max(0, self._most - sum(branch in busy for branch in self._begun))
        given = [branch for branch, _ in zip(self._waiting, range(room), strict=False)]
        for branch in given:
            self.begin(branch)
        return given


def give_all(turns: Iterable[Turns], under_way: Iterable[str]) -> list[str]:
    """Of several fan_outs, as they stand inside one another: an element whose own elements wait for a turn is under way. `under_way`:
    the paths of steps that are."""
    all_turns = list(turns)
    waiting = [branch for each in all_turns for branch in each.waiting]
    if not waiting:
        return []
    busy = {above for path in (*under_way, *waiting) for above in _above(path)}
    return [branch for each in all_turns for branch in each.give(busy)]


def _above(path: str) -> Iterator[str]:
    while (path := path.rpartition(".")[0]) != "":
        yield path
