"""Side effects, as a test counts them: what the task does to the world outside, marked by the test's fakes."""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from lateshift.testing.shift import ProcessDeath


class Effects:
    """`effects.note("charged", order)` where a fake is called, or `with effects.watch(bank, "charge"):` around the test."""

    def __init__(self) -> None:
        self.dead = False  # the process that runs the task was killed: what it still does counts for nothing
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, name: str, *details: object) -> None:
        """This happened, with these details: two orders charged are two effects, one order charged twice is one too many."""
        if self.dead:
            raise ProcessDeath
        with self._lock:
            self._counts[f"{name}({', '.join(map(repr, details))})" if details else name] += 1

    @contextmanager
    def watch(self, owner: object, attribute: str, name: str | None = None) -> Iterator[None]:
        """Note each call of `owner.attribute`, by the values of its arguments; the real one, or your fake, is called then."""
        real = getattr(owner, attribute)
        own = attribute in vars(owner)
        setattr(owner, attribute, self.noting(real, name or attribute))
        try:
            yield
        finally:
            if own:
                setattr(owner, attribute, real)
            else:
                delattr(owner, attribute)

    def noting(self, function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        """`function`, plain or async, with each call noted."""
        said = name or function.__name__

        @wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            self.note(said, *args, *kwargs.values())
            return function(*args, **kwargs)

        @wraps(function)
        async def waiting(*args: Any, **kwargs: Any) -> Any:
            self.note(said, *args, *kwargs.values())
            return await function(*args, **kwargs)

        return waiting if inspect.iscoroutinefunction(function) else plain

    def counts(self) -> Counter[str]:
        """How often each has happened since the run began."""
        with self._lock:
            return Counter(self._counts)

    def begin(self) -> None:
        """A new run: nothing has happened."""
        with self._lock:
            self._counts.clear()
        self.dead = False
