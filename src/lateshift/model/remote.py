"""An exception that was raised in another process, as data. Its class is known by name only: nothing is imported or
unpickled because a message says so."""

from datetime import timedelta


class RemoteError(Exception):
    """Stands for the original wherever an attempt's end is decided and recorded; never raised."""

    def __init__(
        self, name: str, message: str, lineage: tuple[str, ...], remote_traceback: str, retry_after: timedelta | None
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.name = name
        self.lineage = lineage  # the full names of its class and its bases, most derived first
        self.remote_traceback = remote_traceback
        self.retry_after = retry_after


def full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def is_a(error: BaseException, kind: type[BaseException]) -> bool:
    """isinstance, for errors from here and from elsewhere."""
    if isinstance(error, RemoteError):
        return full_name(kind) in error.lineage
    return isinstance(error, kind)


def name_of(error: BaseException) -> str:
    """What to call its class in a history."""
    return error.name if isinstance(error, RemoteError) else type(error).__qualname__
