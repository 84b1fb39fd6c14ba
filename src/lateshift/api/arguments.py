"""What is wrong with arguments, named as it stands in the body that has them."""

from collections.abc import Iterator
from contextlib import contextmanager

from lateshift.errors import ArgumentsInvalid


@contextmanager
def arguments_at(place: str = "arguments") -> Iterator[None]:
    """The field of what is raised is `arguments.order`, not `order`."""
    try:
        yield
    except ArgumentsInvalid as error:
        raise ArgumentsInvalid(str(error), f"{place}.{error.field}" if error.field else place) from error
