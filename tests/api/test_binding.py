"""Where a server may listen."""

from pathlib import Path

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api
from lateshift.api.binding import binding_of, require_tokens
from lateshift.errors import OptionInvalid


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_this_machine_needs_nothing(host: str) -> None:
    binding = binding_of(host, 8642)
    assert binding.is_local
    assert {"127.0.0.1", "localhost", "::1", host} == {*binding.hosts, host}
    require_tokens(binding, some=False)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.1.2.3", "jobs.example.com", "localhost.example.com", "127.1"]
)
def test_elsewhere_is_refused_without_tls_or_a_proxy(host: str) -> None:
    with pytest.raises(OptionInvalid, match="--tls-cert and --tls-key, or --behind-proxy"):
        binding_of(host, 8642, allowed=["jobs.example.com"])


def test_elsewhere_with_a_proxy_needs_a_token_and_a_name() -> None:
    binding = binding_of("0.0.0.0", 8642, allowed=["jobs.example.com"], proxies=["10.0.0.0/24", "::1"])
    assert binding.hosts == ("jobs.example.com",)
    assert len(binding.peers) == 2
    with pytest.raises(OptionInvalid, match="has no token"):
        require_tokens(binding, some=False)
    require_tokens(binding, some=True)
    with pytest.raises(OptionInvalid, match="--allow-host"):
        binding_of("0.0.0.0", 8642, proxies=["10.0.0.0/24"])
    assert binding_of("10.1.2.3", 8642, proxies=["10.0.0.1"]).hosts == ("10.1.2.3",)


@pytest.mark.parametrize(
    "proxies",
    [["0.0.0.0/0"], ["::/0"], ["10.0.0.1", "0.0.0.0/0"], ["0.0.0.0/1", "128.0.0.0/1"], ["::/1"], ["2000::/3"],
     ["::ffff:0:0/96"], ["::/1", "8000::/1"], ["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/3"], ["::ffff:0:0/97"],
     ["8.0.0.0/7"], ["8.0.0.0/8", "11.0.0.1"], ["8.0.0.0/6"], ["2001::/19"], ["2000::/20", "3000::1"]],
    ids=" ".join,
)  # fmt: skip
def test_everybody_is_no_proxy(proxies: list[str]) -> None:
    for host in ("0.0.0.0", "127.0.0.1"):
        with pytest.raises(OptionInvalid, match=r"is everybody, or nearly\. Name the addresses of the proxy"):
            binding_of(host, 8642, allowed=["jobs.example.com"], proxies=proxies)


def test_a_large_network_of_ones_own_is_not_everybody() -> None:
    proxies = [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
    ]
    proxies += ["fc00::/7", "fe80::/10", "::1", "::ffff:10.0.0.0/104"]
    assert len(binding_of("10.1.2.3", 8642, proxies=proxies).peers) == len(proxies)


def test_all_addresses_of_a_provider_are_not_everybody() -> None:
    """Those that Cloudflare names, and as many as may be at the most."""
    proxies = [
        "104.16.0.0/13",
        "172.64.0.0/13",
        "162.158.0.0/15",
        "198.41.128.0/17",
        "2400:cb00::/32",
        "2a06:98c0::/29",
    ]
    for more in (proxies, ["8.0.0.0/8", "10.0.0.0/8", "2000::/20", "fd00::/8"], ["8.8.0.0/16", "8.0.0.0/8"]):
        assert len(binding_of("10.1.2.3", 8642, proxies=more).peers) == len(more)


def test_a_proxy_is_a_network_and_tls_is_two_files(tmp_path: Path) -> None:
    with pytest.raises(OptionInvalid, match=r"10\.0\.0\.0/24"):
        binding_of("127.0.0.1", 8642, proxies=["proxy.example.com"])
    with pytest.raises(OptionInvalid, match="both"):
        binding_of("127.0.0.1", 8642, certificate=tmp_path)
    with pytest.raises(OptionInvalid, match="There is no file"):
        binding_of("127.0.0.1", 8642, certificate=tmp_path / "a", key=tmp_path / "b")
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    binding = binding_of("10.1.2.3", 8642, certificate=tmp_path / "a", key=tmp_path / "b")
    assert binding.url(8642) == "https://10.1.2.3:8642"
    assert binding_of("::1", 0).url(7) == "http://[::1]:7"


@pytest.mark.parametrize(
    "name",
    [
        "127.0.0.1:9923",
        "jobs.example.com:443",
        "https://jobs.example.com",
        "jobs.example.com/",
        "[::1]:80",
        "*",
        "",
        "a b",
    ],
)
def test_a_name_with_a_port_or_more_is_refused_rather_than_never_matched(name: str) -> None:
    with pytest.raises(OptionInvalid, match="without a scheme, a port or a path"):
        binding_of("127.0.0.1", 0, allowed=[name])
    with pytest.raises(OptionInvalid, match="good for every port"):
        make_api(Lateshift("shop"), hosts=[name])


def test_names_and_addresses_are_taken_as_they_are_written() -> None:
    for name in ("jobs.example.com", "JOBS", "10.0.0.7", "::1", "[::1]", "jobs_1.internal"):
        binding_of("127.0.0.1", 0, allowed=[name])
