"""What ids made in one moment have in common."""

from collections.abc import Sequence
from itertools import takewhile


def common_start(texts: Sequence[str]) -> str:
    """With which all of them begin: a piece of each, and so of none alone."""
    return "".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False)))
