"""Which frames of a traceback tell faults apart: the innermost, where it was raised, and on whose behalf. Pure."""

import re

COUNTED = 3

_FRAME = re.compile(r'File ".*?", line \d+, in (\S+)')


def names(traceback: str) -> list[str]:
    """Of the functions. One that calls itself is one."""
    return [frame[1] for frame in _counted(traceback)]


def cut(traceback: str) -> str:
    """No more of it than these frames."""
    return "\n".join(frame[0] for frame in _counted(traceback))


def _counted(traceback: str) -> list[re.Match[str]]:
    last = {frame[1]: frame for frame in _FRAME.finditer(traceback)}
    ordered = sorted(last.values(), key=lambda frame: frame.start())
    return ordered[-COUNTED:]
