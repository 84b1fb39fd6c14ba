"""Addresses of brokers as they are shown: nothing in them opens a door."""

import pytest

from lateshift.triggers.addresses import bare, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://me:pass@host:5672/vhost", "amqp://host:5672/vhost"),
        ("amqp://a:one@first//;amqp://b:two@second//", "amqp://first//"),
        ("redis://:p@ss@host:6379/1?ssl_password=x", "redis://host:6379/1"),
        ("sqs://AKIA:secret/key@", "sqs://"),
        ("sqs://", "sqs://"),
        ("azurestoragequeues://a/key==@https://account.queue.core.windows.net", "azurestoragequeues://https://account.queue.core.windows.net"),
        ("azureservicebus://policy:a/key=@space", "azureservicebus://space"),
        ("memory://", "memory://"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_whoever_may_enter(url: str, shown: str) -> None:
    assert bare(url) == shown


@pytest.mark.parametrize(
    ("url", "options", "text"),
    [
        ("amqp://me:hunter22@host//", {}, "refused amqp://me:hunter22@host"),
        ("amqp://me:hun%40er@host//", {}, "refused hun@er"),
        ("azurestoragequeues://a/key==@https://x", {}, "signature of a/key== is wrong"),
        ("redis://host/0?password=hunter22", {}, "AUTH hunter22"),
        ("amqp://a:one11@x//;amqp://b:two22@y//", {}, "neither one11 nor two22"),
        ("sqs://", {"sqs_secret": "hunter22"}, "hunter22 expired"),
    ],
)
def test_what_a_driver_repeats_is_hidden(url: str, options: dict[str, str], text: str) -> None:
    told = without_secrets(text, url, options)
    assert "…" in told
    for secret in ("hunter22", "hun@er", "a/key==", "one11", "two22"):
        assert secret not in told


def test_what_is_no_secret_stays() -> None:
    assert without_secrets("no queue q", "amqp://guest@host//", {"region": "queue"}) == "no queue q"
