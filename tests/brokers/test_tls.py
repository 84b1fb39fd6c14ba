"""TLS, as far as it can be had here: a Redis of our own whose certificate is signed by nobody that the system knows."""

import contextlib
import ipaddress
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lateshift.model.triggering.sources import MessageSource
from lateshift.triggers.messages import Messages
from lateshift.triggers.source import SourceAway
from tests.brokers.servers import HOST, Missing, free_port, running, speaks_tls
from tests.unit.test_messages import RECEIPTS


def certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lateshift tests")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "cert.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return public, private


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("Redis: redis-server is not installed")
    public, private = certificate(tmp_path)
    port = free_port()
    command = [
        program, "--port", "0", "--tls-port", str(port), "--bind", HOST, "--save", "", "--dir", str(tmp_path),
        "--tls-cert-file", str(public), "--tls-key-file", str(private), "--tls-ca-cert-file", str(public),
        "--tls-auth-clients", "no",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(running("Redis", command, tmp_path, lambda: speaks_tls(port, public)))
        except Missing as missing:
            pytest.skip(str(missing))
        yield port, public


def test_a_queue_is_read_over_tls_by_whoever_trusts_the_server(server: tuple[int, Path]) -> None:
    port, public = server
    options = {"ssl": {"ssl_ca_certs": str(public), "ssl_cert_reqs": "required"}}
    source = Messages(MessageSource(url=f"rediss://{HOST}:{port}/0", queue="q", options=options))
    source.open(None, RECEIPTS)
    assert source.read(10, 0.01).events == []
    source.close()


def test_a_server_that_nobody_vouches_for_is_not_spoken_to(server: tuple[int, Path]) -> None:
    port, _ = server
    options = {"ssl": {"ssl_cert_reqs": "required"}}
    source = Messages(MessageSource(url=f"rediss://{HOST}:{port}/0", queue="q", options=options))
    with pytest.raises(SourceAway, match="certificate verify failed"):
        source.open(None, RECEIPTS)
    source.close()
