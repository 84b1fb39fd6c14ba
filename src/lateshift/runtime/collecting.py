"""The garbage collector of a process that has started: what is loaded stays, and need not be looked at again. Work makes thousands
of objects that die young, so it looks at those less often than by default."""

import gc


def settle_down() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
