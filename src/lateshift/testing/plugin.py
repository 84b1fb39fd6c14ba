"""The pytest plug-in, loaded by pytest itself wherever Lateshift is installed. Fixtures: `lateshift_kit` for the app that the
option `lateshift_app` or a fixture of that name gives, and `lateshift_testing` for any app."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lateshift.testing.kit import Kit

OPTION = "lateshift_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(OPTION, "The Lateshift app of the fixture lateshift_kit, such as shop:app.", default="")


@pytest.fixture
def lateshift_app(pytestconfig: pytest.Config) -> Any:
    """The app to test. Override it in your conftest.py, or name the app in the configuration of pytest."""
    named = pytestconfig.getini(OPTION)
    if not named:
        raise pytest.UsageError(
            "Which app? Set lateshift_app = shop:app in the configuration of pytest, or write a fixture `lateshift_app` that "
            "returns it. For several apps, use the fixture lateshift_testing."
        )
    from lateshift.worker.program import find_app

    return find_app(named)


@pytest.fixture
def lateshift_testing() -> Iterator[Callable[..., "Kit"]]:
    """`kit = lateshift_testing(app)`: open until the test ends."""
    from lateshift.testing.kit import testing

    with ExitStack() as stack:
        yield lambda app, **options: stack.enter_context(testing(app, **options))


@pytest.fixture
def lateshift_kit(lateshift_app: Any, lateshift_testing: "Callable[..., Kit]") -> "Kit":
    """The app in its kit."""
    return lateshift_testing(lateshift_app)
