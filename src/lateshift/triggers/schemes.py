"""What a URL begins with: a misspelt one is refused where it is written. Others may come with a package: opening one tells."""

from collections.abc import Callable
from difflib import get_close_matches

from lateshift.errors import TriggerInvalid
from lateshift.triggers.addresses import bare

# As kombu and SQLAlchemy have them; neither is imported for a declaration.
BROKERS = (
    "amqp", "amqps", "pyamqp", "librabbitmq", "redis", "rediss", "sentinel", "sqs", "azurestoragequeues", "azureservicebus",
    "confluentkafka", "kafka", "memory", "mongodb", "zookeeper", "sqlalchemy", "sqla", "slmq", "filesystem", "qpid", "consul", "etcd",
    "pyro", "gcpubsub", "pgmq",
)  # fmt: skip
DATABASES = ("sqlite", "postgresql", "postgres", "mysql", "mariadb", "oracle", "mssql")
DIALECTS = "sqlalchemy.dialects"  # the group of entry points in which packages name others

# What kombu needs beside itself, by scheme.
LIBRARIES = {
    "redis": "redis", "rediss": "redis", "sentinel": "redis", "sqs": "boto3", "azurestoragequeues": "azure.storage.queue",
    "azureservicebus": "azure.servicebus",
}  # fmt: skip


def scheme_of(url: str) -> str:
    return url.partition("://")[0].partition("+")[0].lower()


def refuse_misspelt_broker(url: str) -> None:
    _refuse(url, BROKERS)


def refuse_misspelt_database(url: str) -> None:
    _refuse(url, DATABASES, _brought_along)


def _brought_along(scheme: str) -> bool:
    from importlib.metadata import entry_points  # slow to import, and seldom asked

    return any(each.name.partition(".")[0] == scheme for each in entry_points(group=DIALECTS))


def _refuse(
    url: str, known: tuple[str, ...], is_another: Callable[[str], bool] = lambda scheme: False
) -> None:
    scheme = scheme_of(url)
    close = get_close_matches(scheme, known, 1, cutoff=0.75)
    if scheme not in known and close and not is_another(scheme):
        raise TriggerInvalid(f"{bare(url)!r}: there is no {scheme}://. Did you mean {close[0]}://?")
