"""How often somebody may ask, and how long whoever guesses has to wait; by a clock that is moved."""

from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network

import pytest

from lateshift.api import rates
from lateshift.api.application import make_api
from lateshift.api.bounds import (
    BACKOFF_FIRST,
    BACKOFF_MOST,
    BURST_SECONDS,
    FAILURES_FORGOTTEN,
    FAILURES_OF_ADDRESS,
    FAILURES_OF_TOKEN,
    Bounds,
)
from lateshift.api.problem import Refused
from lateshift.api.rates import Backoff, Rate, caller_at
from lateshift.model.access import Scope, new_token
from lateshift.testing import Kit
from tests.api.asking import Web, asking, token_of

SELDOM = 0.001  # requests in a second: one at once, and the next a long while later


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def waits(refused: pytest.ExceptionInfo[Refused]) -> int:
    return int(refused.value.headers["Retry-After"])


def test_a_bucket_lets_through_its_burst_and_then_its_rate() -> None:
    time = Time()
    rate = Rate(10, time)
    for _ in range(10 * BURST_SECONDS):
        rate.take("ann")
    with pytest.raises(Refused) as refused:
        rate.take("ann")
    assert waits(refused) == 1
    rate.take("bob")
    time.now += 0.1
    rate.take("ann")
    with pytest.raises(Refused):
        rate.take("ann")
    time.now += 3600
    for _ in range(10 * BURST_SECONDS):
        rate.take("ann")
    with pytest.raises(Refused):
        rate.take("ann")


def test_callers_beyond_a_number_are_forgotten_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "CALLERS_REMEMBERED", 3)
    rate = Rate(0.5, Time())
    for who in ("a", "b", "c"):
        rate.take(who)
    with pytest.raises(Refused):
        rate.take("a")  # the last that was heard of
    rate.take("d")
    rate.take("b")
    with pytest.raises(Refused):
        rate.take("a")


def test_each_failure_beyond_those_that_are_free_doubles_the_wait_up_to_a_limit() -> None:
    time = Time()
    backoff = Backoff(3, time)
    for _ in range(2):
        backoff.failed("ann")
        backoff.check("ann")
    waited = []
    for _ in range(12):
        backoff.failed("ann")
        with pytest.raises(Refused) as refused:
            backoff.check("ann")
        waited.append(waits(refused))
        time.now += waited[-1]
        backoff.check("ann")
    first, most = int(BACKOFF_FIRST.total_seconds()), int(BACKOFF_MOST.total_seconds())
    assert waited == [min(most, first * 2**n) for n in range(12)]
    backoff.check("bob")
    time.now += FAILURES_FORGOTTEN.total_seconds() + 1
    backoff.failed("ann")
    backoff.check("ann")


@pytest.mark.parametrize(
    ("address", "known"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("a socket", "a socket"),
    ],
)
def test_an_address_of_ipv6_is_known_by_what_its_owner_cannot_choose(address: str, known: str) -> None:
    assert caller_at(address) == known


@pytest.fixture
def web(kit: Kit) -> Iterator[Web]:
    with asking(kit.app, make_api(kit.app)) as web:
        yield web


def test_a_token_and_an_address_may_ask_so_often(kit: Kit) -> None:
    with asking(kit.app, make_api(kit.app, bounds=Bounds(token_rate=SELDOM))) as web:
        other = token_of(kit.app, "other", [Scope.READ])
        assert web("GET", "/v1/queues").status_code == 200
        over = web("GET", "/v1/queues")
        assert over.status_code == 429
        assert 900 < int(over.headers["retry-after"]) <= 1000
        assert web("GET", "/v1/queues", token=other).status_code == 200
        kit.travel(seconds=1000)
        assert web("GET", "/v1/queues").status_code == 200
    with asking(kit.app, make_api(kit.app, bounds=Bounds(address_rate=SELDOM))) as web:
        assert web("GET", "/health/live", token=None).status_code == 200
        spoofed = {"X-Forwarded-For": "10.9.9.9", "X-Real-IP": "10.9.9.9", "Forwarded": "for=10.9.9.9"}
        assert web("GET", "/health/live", token=None, headers=spoofed).status_code == 429
    with asking(kit.app, make_api(kit.app, bounds=Bounds(token_rate=SELDOM))) as web:
        token = kit.app.store.tokens.named("other")
        assert token is not None
        now = kit.app.store.clock.now()
        browsers = [
            new_token(f"other:{n}", [Scope.READ], [], at=now, by="other", parent=token.id) for n in range(2)
        ]
        for browser, _ in browsers:
            kit.app.store.tokens.create(browser)
        first, second = (web("GET", "/v1/queues", token=text).status_code for _, text in browsers)
        assert (first, second) == (200, 429)  # they are one token
    proxied = make_api(kit.app, bounds=Bounds(address_rate=SELDOM), peers=[ip_network("127.0.0.0/8")])
    with asking(kit.app, proxied) as web:
        for _ in range(20):
            assert web("GET", "/health/live", token=None).status_code == 200


def test_who_guesses_at_one_token_has_to_wait_and_a_right_guess_is_not_looked_at(web: Web, kit: Kit) -> None:
    real = token_of(kit.app, "real", [Scope.READ])
    other = token_of(kit.app, "other", [Scope.READ])
    guesses = [real[:-3] + f"{n:03}" for n in range(FAILURES_OF_TOKEN)]
    for guess in guesses:
        assert web("GET", "/v1/queues", token=guess).status_code == 401
    for text in (guesses[0], real):
        late = web("GET", "/v1/queues", token=text)
        assert (late.status_code, late.headers["retry-after"]) == (429, "1")
    assert web("GET", "/v1/queues", token=other).status_code == 200
    kit.travel(seconds=1)
    assert web("GET", "/v1/queues", token=real).status_code == 200


def test_who_guesses_at_many_has_to_wait_and_keeps_nobody_with_a_good_token_out(web: Web, kit: Kit) -> None:
    for n in range(FAILURES_OF_ADDRESS):
        assert web("GET", "/v1/queues", token=f"lsh_{n:03}" + "0" * 61).status_code == 401
    for guess in ("no token at all", "lsh_" + "0" * 64):
        late = web("GET", "/v1/queues", token=guess)
        assert (late.status_code, late.headers["retry-after"]) == (429, "1")
    assert web("GET", "/v1/queues").status_code == 200
    assert web("GET", "/health/live", token=None).status_code == 200
    kit.travel(seconds=1)
    assert web("GET", "/v1/queues", token="no token at all").status_code == 401


def test_a_token_is_not_guessed_at_more_often_while_its_address_has_to_wait(web: Web, kit: Kit) -> None:
    real = token_of(kit.app, "real", [Scope.READ])
    for _ in range(FAILURES_OF_ADDRESS):
        assert web("GET", "/v1/queues", token="no token at all").status_code == 401
    for n in range(FAILURES_OF_TOKEN):
        assert web("GET", "/v1/queues", token=real[:-3] + f"{n:03}").status_code == 429
    assert web("GET", "/v1/queues", token=real).status_code == 429
    kit.travel(seconds=1)
    assert web("GET", "/v1/queues", token=real).status_code == 200


def test_no_token_at_all_is_no_guess(web: Web) -> None:
    for _ in range(FAILURES_OF_ADDRESS + 1):
        assert web("GET", "/v1/queues", token=None).status_code == 401
    assert web("GET", "/v1/queues").status_code == 200


def test_behind_a_proxy_one_who_guesses_keeps_nobody_out(kit: Kit) -> None:
    with asking(kit.app, make_api(kit.app, peers=[ip_network("127.0.0.0/8")])) as web:
        for n in range(FAILURES_OF_ADDRESS + 1):
            assert web("GET", "/v1/queues", token=f"lsh_{n:03}" + "0" * 61).status_code == 401
        assert web("GET", "/v1/queues").status_code == 200


def test_failures_are_forgotten_later_than_the_longest_wait_is_over() -> None:
    assert timedelta(0) < BACKOFF_FIRST < BACKOFF_MOST < FAILURES_FORGOTTEN
