"""Where a server may listen."""

from pathlib import Path

import pytest

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
