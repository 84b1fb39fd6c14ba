"""Patterns of paths: `*`, `?` and `[…]` within a name, `**` for any number of folders. What is hidden matches only what names it."""

import os
import re
from fnmatch import translate
from pathlib import Path
from typing import TypeAlias

from lateshift.errors import TriggerInvalid

States: TypeAlias = frozenset[int]  # the parts of the pattern that the next name of a path may match

_SPECIAL = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[!?+\]?+[^]]*+\]")  # [ab], [!ab], []ab]: a ] that comes first is one of them


class PathPattern:
    """Followed one name at a time, so that a tree is walked once and only where something can match."""

    def __init__(self, pattern: str) -> None:
        parts: list[str] = []
        for part in pattern.split("/"):
            if part == "..":
                raise TriggerInvalid(f"{pattern!r}: .. may stand before the first *, ? or [ only.")
            if part not in ("", ".") and not (part == "**" and parts[-1:] == ["**"]):
                parts.append(part)
        if not parts or pattern.endswith("/"):
            raise TriggerInvalid(f"{pattern!r} names a folder. Say which files in it, such as inbox/*")
        if parts[-1] == "**":
            parts.append("*")
        for part in parts:
            _refuse_open_bracket(pattern, part)
        self._parts = [None if part == "**" else _Part(part) for part in parts]
        self._last = len(parts) - 1
        self.deep = self._last > 0  # whether it looks below the first folder
        self.start = self._closed({0})

    def into(self, states: States, name: str, *, link: bool = False) -> States:
        """Where a folder of this name leads; nowhere, if the answer is empty. `**` follows no link: links make circles."""
        reached: set[int] = set()
        for place in states:
            part = self._parts[place]
            if part is None:
                if not link and not name.startswith("."):
                    reached.add(place)
            elif place < self._last and part.matches(name):
                reached.add(place + 1)
        return self._closed(reached)

    def ends(self, states: States, name: str) -> bool:
        """Whether a file of this name matches."""
        last = self._parts[-1]
        return self._last in states and last is not None and last.matches(name)

    def matches(self, path: str) -> bool:
        """Of a path below where the pattern begins."""
        *folders, name = path.split("/")
        states = self.start
        for folder in folders:
            states = self.into(states, folder)
        return self.ends(states, name)

    def _closed(self, states: set[int]) -> States:
        """`**` stands for no folder at all, too. It is never twice in a row, and never last."""
        return frozenset(states | {place + 1 for place in states if self._parts[place] is None})


class _Part:
    """A pattern of one name."""

    def __init__(self, text: str) -> None:
        self._hidden = text.startswith(".")
        self._match = re.compile(translate(text)).match

    def matches(self, name: str) -> bool:
        return (self._hidden or not name.startswith(".")) and self._match(name) is not None


def _refuse_open_bracket(pattern: str, part: str) -> None:
    """fnmatch would take it for the character itself, and nothing would ever match."""
    if "[" in _CLASS.sub("", part):
        raise TriggerInvalid(
            f"{pattern!r}: in {part!r} a [ is never closed. [ab] stands for a or b; write [[] for the character itself."
        )


def literal(pattern: str) -> tuple[str, str]:
    """The folders that a pattern names, as far as it does, and the pattern below them."""
    parts = pattern.split("/")
    plain = next((place for place, part in enumerate(parts) if _SPECIAL.search(part)), len(parts) - 1)
    return "/".join(parts[:plain]), "/".join(parts[plain:])


def rooted(pattern: str) -> tuple[str, PathPattern]:
    """The folder in which a pattern of files begins, absolute, and the pattern below it. `~` is somebody's home."""
    folder, rest = literal(pattern)
    if pattern.startswith("/") and not folder:
        folder = "/"
    return os.path.abspath(Path(folder).expanduser()), PathPattern(rest)  # noqa: PTH100 - links stay as they are named
