"""Servers for one run. A test that needs one that is not there is skipped, by the server's name; with LATESHIFT_BROKERS=all,
as `make test-brokers` has it, nothing may be skipped."""

import importlib.util
import os
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.brokers import servers

if TYPE_CHECKING:
    from tests.brokers.queues import Queue

T = TypeVar("T")

ALL = os.environ.get("LATESHIFT_BROKERS") == "all"
CLIENTS = ("azure.storage.blob", "azure.storage.queue", "boto3", "kombu", "obstore", "redis")


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


MISSING = [name for name in CLIENTS if not _installed(name)]
if MISSING and not ALL:  # the modules import them
    collect_ignore_glob = ["test_*.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was skipped, and LATESHIFT_BROKERS=all allows none: {report.longrepr}"
        )
    return report


def _lend(server: AbstractContextManager[T]) -> Iterator[T]:
    try:
        with server as lent:
            yield lent
    except servers.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[str]:
    yield from _lend(servers.rabbitmq())


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    yield from _lend(servers.redis())


@pytest.fixture(scope="session")
def azurite() -> Iterator[servers.Azurite]:
    yield from _lend(servers.azurite())


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    yield from _lend(servers.moto())


@pytest.fixture(params=["rabbitmq", "redis", "sqs", "azure"])
def queue(request: pytest.FixtureRequest) -> Iterator["Queue"]:
    """An empty queue, once on each broker."""
    with lend_queue(request.param, request) as lent_one:
        yield lent_one


def lend_queue(kind: str, request: pytest.FixtureRequest) -> AbstractContextManager["Queue"]:
    from tests.brokers import queues

    match kind:
        case "rabbitmq":
            return queues.lent(queues.RabbitQueue(request.getfixturevalue("rabbitmq")))
        case "redis":
            return queues.lent(queues.RedisQueue(request.getfixturevalue("redis")))
        case "sqs":
            return queues.lent(queues.SqsQueue(request.getfixturevalue("moto")))
        case "azure":
            return queues.lent(queues.AzureQueue(request.getfixturevalue("azurite")))
    raise AssertionError(kind)
