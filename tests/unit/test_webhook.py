"""A webhook is signed, goes to the address that was looked at and nowhere else, and says what became of it."""

import base64
import hashlib
import hmac
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from lateshift.errors import OptionInvalid, Permanent, WebhookFailed
from lateshift.model.reply import URL_LIMIT
from lateshift.replies import signing, webhook
from lateshift.replies.addresses import Reach, reach_of
from lateshift.replies.signing import Secrets
from lateshift.replies.webhook import BODY_LIMIT, LONGEST_WISH, Endpoint
from tests.unit.receiver import Receiver, receiving

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OTHER = "whsec_" + base64.b64encode(bytes(24)).decode()
BODY = b'{"type":"alert.workflow_held"}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def endpoint(receiver: Receiver) -> Endpoint:
    return Endpoint(receiver.url, SECRET, internal=True)


def signature(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    """By the book, once more."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


# -- what is sent ------------------------------------------------------------------------------------------------------


def test_it_is_posted_with_its_id_its_time_and_a_signature_over_both_and_the_body(
    receiver: Receiver, endpoint: Endpoint
) -> None:
    endpoint.post("msg_1", BODY, AT)
    [taken] = receiver.taken
    assert (taken.path, taken.body) == ("/alerts?token=hidden", BODY)
    assert taken.headers["webhook-id"] == "msg_1"
    assert taken.headers["webhook-timestamp"] == "1772366400"
    assert taken.headers["webhook-signature"] == signature(KEY, "msg_1", "1772366400", BODY)
    assert taken.headers["content-type"] == "application/json"
    assert taken.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_while_one_secret_takes_anothers_place_both_sign(receiver: Receiver) -> None:
    Endpoint(receiver.url, [SECRET, OTHER], internal=True).post("msg_1", BODY, AT)
    stamp = receiver.taken[0].headers["webhook-timestamp"]
    assert receiver.taken[0].headers["webhook-signature"].split() == [
        signature(KEY, "msg_1", stamp, BODY), signature(bytes(24), "msg_1", stamp, BODY),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "secret",
    ["", "hunter2 hunter2 hunter2 hunter2", "whsec_", "whsec_not base64!", "whsec_" + base64.b64encode(bytes(23)).decode(),
     "whsec_" + base64.b64encode(bytes(65)).decode(), [], [SECRET, ""], None, 7, [SECRET] * (signing.SECRETS_MOST + 1)],
    ids=str,
)  # fmt: skip
def test_a_secret_that_is_none_is_refused_and_not_shown(secret: Any) -> None:
    with pytest.raises((OptionInvalid, TypeError)) as refused:
        Endpoint("https://hooks.example.com/", secret)
    assert not isinstance(secret, str) or not secret or secret == "whsec_" or secret not in str(refused.value)


def test_a_secret_may_be_named_and_is_looked_up_when_it_is_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint(receiver.url, ["env:HOOK_NEW", "env:HOOK_OLD"], internal=True)
    with pytest.raises(WebhookFailed, match="HOOK_NEW or HOOK_OLD in the environment"):
        endpoint.post("msg_1", b"{}", AT)
    assert receiver.taken == []
    monkeypatch.setenv("HOOK_OLD", SECRET)
    endpoint.post("msg_1", b"{}", AT)
    stamp = int(AT.timestamp())
    [taken] = receiver.taken
    assert taken.headers["webhook-signature"] == Secrets(SECRET).signatures("msg_1", stamp, b"{}")
    monkeypatch.setenv("HOOK_OLD", "hunter2-hunter2")
    with pytest.raises(WebhookFailed) as refused:
        endpoint.post("msg_1", b"{}", AT)
    assert "hunter2" not in str(refused.value)


def test_nothing_that_is_shown_has_the_secret_or_the_path() -> None:
    secrets, endpoint = Secrets(SECRET), Endpoint("https://hooks.example.com/t0ken?key=t0ken", SECRET)
    for shown in (repr(secrets), str(secrets), repr(endpoint), str(endpoint)):
        assert "t0ken" not in shown
        assert SECRET.removeprefix("whsec_") not in shown
    assert str(endpoint) == "https://hooks.example.com/…"


def test_a_body_over_the_limit_is_not_sent_and_no_retry_helps(receiver: Receiver, endpoint: Endpoint) -> None:
    endpoint.post("msg_1", b"x" * BODY_LIMIT, AT)
    with pytest.raises(Permanent, match="over the limit of 20,000"):
        endpoint.post("msg_2", b"x" * (BODY_LIMIT + 1), AT)
    assert len(receiver.taken) == 1


# -- what is answered --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_it_is_taken_if_the_receiver_says_so(receiver: Receiver, endpoint: Endpoint, status: int) -> None:
    receiver.answers = [(status, {}, b"")]
    endpoint.post("msg_1", BODY, AT)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(
    receiver: Receiver, endpoint: Endpoint, status: int
) -> None:
    receiver.answers = [(status, {"Location": receiver.url}, b"")]
    with pytest.raises(WebhookFailed, match="a redirect, which is not followed"):
        endpoint.post("msg_1", BODY, AT)
    assert len(receiver.taken) == 1


def test_one_that_is_gone_is_not_tried_again(receiver: Receiver, endpoint: Endpoint) -> None:
    receiver.answers = [(410, {}, b"")]
    with pytest.raises(Permanent, match="wants no more webhooks"):
        endpoint.post("msg_1", BODY, AT)


def test_of_an_answer_only_the_status_is_told_for_it_may_repeat_the_path(
    receiver: Receiver, endpoint: Endpoint
) -> None:
    receiver.answers = [(404, {}, b"Cannot POST /hidden " + b"x" * 1_000_000)]
    with pytest.raises(WebhookFailed) as failed:
        endpoint.post("msg_1", BODY, AT)
    assert str(failed.value).endswith("answered 404")
    assert "hidden" not in str(failed.value)


@pytest.mark.parametrize(
    ("status", "said", "wish"),
    [
        (429, "120", timedelta(minutes=2)),
        (503, "999999", LONGEST_WISH),
        (503, "tomorrow", None),
        (503, "9" * 5000, None),
        (500, "120", None),
    ],
)
def test_how_long_it_wants_to_be_left_alone_is_heard(
    receiver: Receiver, endpoint: Endpoint, status: int, said: str, wish: timedelta | None
) -> None:
    receiver.answers = [(status, {"Retry-After": said}, b"")]
    with pytest.raises(WebhookFailed) as failed:
        endpoint.post("msg_1", BODY, AT)
    assert failed.value.retry_after == wish


def test_nobody_there_is_a_failure_that_may_pass(receiver: Receiver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(WebhookFailed, match="did not answer"):
        Endpoint(f"http://127.0.0.1:{port}/", SECRET, internal=True).post("msg_1", BODY, AT)


@pytest.mark.parametrize("begins", [b"H", b"HTTP/1.1 500 No\r\n\r\n"])
def test_an_answer_that_comes_too_slowly_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT", timedelta(milliseconds=300))
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        heard, _ = server.accept()
        with heard:
            heard.sendall(begins)
            while not over.wait(0.05):  # each byte within the timeout of one read
                try:
                    heard.sendall(b"H")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        try:
            with pytest.raises(WebhookFailed, match=r"did not answer|answered 500"):
                Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/", SECRET, internal=True).post(
                    "msg_1", BODY, AT
                )
            assert not over.is_set()
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 two hundred\r\n\r\n", b"\x00\xff\x00", b"SSH-2.0-x\r\n"])
def test_what_is_no_answer_is_a_failure(said: bytes) -> None:
    def answer(server: socket.socket) -> None:
        heard, _ = server.accept()
        with heard:
            heard.recv(65536)
            heard.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        with pytest.raises(WebhookFailed, match="did not answer"):
            Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/", SECRET, internal=True).post(
                "msg_1", BODY, AT
            )
        thread.join()


# -- where it goes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "hooks.example.com", "ftp://hooks.example.com/", "https://", "https:///alerts", "https://hooks.example.com:99999/",
     "https://ann:secret@hooks.example.com/", "https://ann@hooks.example.com/", "https://hooks.example.com/#here",
     "https://hooks.example.com/a b", "https://hooks.example.com/\r\nX-Evil: 1", "https://höoks.example.com/",
     "http://hooks.example.com/", "file:///etc/passwd", "https://[::1/", "https://hooks.example.com/" + "x" * URL_LIMIT, None, 7],
    ids=lambda url: str(url)[:50],
)  # fmt: skip
def test_a_url_that_cannot_be_is_refused_where_it_is_written(url: Any) -> None:
    with pytest.raises(OptionInvalid) as refused:
        Endpoint(url, SECRET)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "[::1]", "[fd00::1]", "[fc00::1]",
     "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::a00:1]", "[2002:7f00:1::]",
     "[2002:a00:1::]"],
)  # fmt: skip
def test_an_address_of_ones_own_network_is_refused_unless_it_is_meant(host: str) -> None:
    with pytest.raises(OptionInvalid, match="say internal=True"):
        Endpoint(f"https://{host}/", SECRET)
    Endpoint(f"https://{host}/", SECRET, internal=True)


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "0.0.0.0", "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1",
     "[fe80::1]", "[::]", "[ff02::1]", "[fec0::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[::7f00:1]",
     "[2001:db8::1]", "[64:ff9b:1::a00:1]", "[64:ff9b:1:7f00:0:100:808:808]", "[64:ff9b:1::808:808]", "[5f00::1]"],
)  # fmt: skip
def test_an_address_that_is_none_to_send_to_is_refused_in_any_case(host: str, internal: bool) -> None:
    with pytest.raises(OptionInvalid, match="is none to send to"):
        Endpoint(f"https://{host}/", SECRET, internal=internal)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_a_public_address_is_public_however_it_is_written(address: str) -> None:
    assert reach_of(address) is Reach.PUBLIC


FORMS = (
    "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "0x7f.1", "0x7f.0.0.1", "127.0.1", "017700000001", "0177.1", "0x7F.0X0.0x0.1",
    "127.000.000.001", "00000177.0.0.1", "2130706434", "LOCALHOST", "localhost.",
)  # fmt: skip


@pytest.mark.parametrize("host", FORMS)
def test_a_name_that_leads_to_this_machine_is_refused_when_it_is_looked_up(host: str) -> None:
    with pytest.raises(
        WebhookFailed, match=r"127\.0\.0\.[12] is of this machine|::1 is of this machine|has no address"
    ):
        Endpoint(f"https://{host}/", SECRET).post("msg_1", BODY, AT)


METADATA = (
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.16689662", "0xA9.0xFE.0xA9.0xFE", "025177524776",
    "0", "0.0.0.0", "0x0", "00", "0.0", "4294967295", "0xe0000001", "192.0.0.192", "168.63.129.16",
)  # fmt: skip
OTHER_FORMS = (
    "::ffff:a9fe:a9fe", "::ffff:169.254.169.254", "::a9fe:a9fe", "::ffff:0:a9fe:a9fe", "::ffff:0:127.0.0.1", "64:ff9b::169.254.169.254",
    "64:ff9b:1::169.254.169.254", "2002:a9fe:a9fe::1", "fe80::a9fe:a9fe", "fe80::1%1", "fec0::1", "ff01::1", "ff0e::1", "::", "::127.0.0.1", "100::1",
    "2001:db8::a9fe:a9fe", "2001:0:808:808:0:0:5601:5601", "0.0.0.1", "192.0.0.8", "192.0.2.9", "198.51.100.1", "203.0.113.1", "198.19.255.255",
    "233.252.0.1", "255.255.255.254", "fd00:ec2::254", "100.100.100.200", "2002:e000:1::", "64:ff9b::e000:1",
)  # fmt: skip


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("host", METADATA)
def test_where_clouds_keep_their_secrets_is_reached_in_no_spelling(host: str, internal: bool) -> None:
    with pytest.raises((OptionInvalid, WebhookFailed), match=r"is none to send to|has no address"):
        Endpoint(f"https://{host}/", SECRET, internal=internal).post("msg_1", BODY, AT)


@pytest.mark.parametrize("address", OTHER_FORMS)
def test_an_address_that_stands_for_another_is_judged_by_that(address: str) -> None:
    assert reach_of(address) is Reach.NOBODY


def leading(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names lead to these, at the first time, at the second, and so on. Gives what was asked for."""
    asked: list[str] = []
    left = list(answers)
    real = socket.getaddrinfo

    def answer(host: str, port: int, *more: Any, **options: Any) -> list[Any]:
        if ".example." not in host:
            return real(host, port, *more, **options)
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr("lateshift.replies.addresses.socket.getaddrinfo", answer)
    return asked


def test_a_name_whose_address_nobody_says_in_time_is_a_try_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A resolver may take minutes, and a try that ran into its complete-by would tell nobody that it was the last."""
    said = threading.Event()
    monkeypatch.setattr(
        "lateshift.replies.addresses.socket.getaddrinfo", lambda *asked, **more: said.wait(60)
    )
    monkeypatch.setattr("lateshift.replies.addresses.RESOLVED_WITHIN", timedelta(seconds=0.05))
    with pytest.raises(WebhookFailed, match="nobody has said its address within"):
        Endpoint("https://hooks.example.com/", SECRET).post("msg_1", BODY, AT)
    said.set()


def test_one_bad_address_among_good_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(WebhookFailed, match=r"10\.0\.0\.1 is of this machine or its network"):
        Endpoint("https://hooks.example.com/", SECRET).post("msg_1", BODY, AT)


def test_what_is_allowed_inside_is_not_sent_outside_in_the_open(monkeypatch: pytest.MonkeyPatch) -> None:
    leading(monkeypatch, ["8.8.8.8"])
    with pytest.raises(WebhookFailed, match="is public: use https"):
        Endpoint("http://hooks.example.com/", SECRET, internal=True).post("msg_1", BODY, AT)


def test_it_connects_to_the_address_that_was_looked_at_and_asks_no_second_time(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    asked = leading(
        monkeypatch, ["127.0.0.1"], ["10.9.8.7"]
    )  # the name is turned round between check and use
    Endpoint(f"http://hooks.example.test:{receiver.port}/", SECRET, internal=True).post("msg_1", BODY, AT)
    assert asked == ["hooks.example.test"]
    assert receiver.taken[0].headers["host"] == f"hooks.example.test:{receiver.port}"


def test_a_name_has_several_addresses_one_of_which_answers(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    leading(monkeypatch, ["127.0.0.9", "127.0.0.1"])  # nobody listens at the first
    Endpoint(f"http://hooks.example.test:{receiver.port}/", SECRET, internal=True).post("msg_1", BODY, AT)
    assert len(receiver.taken) == 1


# -- TLS ---------------------------------------------------------------------------------------------------------------


def test_over_tls_the_certificate_is_looked_at_and_the_name_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    leading(monkeypatch, ["127.0.0.1"])
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    with receiving(certificate=authority.issue_cert("hooks.example.test")) as receiver:
        there = Endpoint(f"https://hooks.example.test:{receiver.port}/", SECRET, internal=True)
        with pytest.raises(WebhookFailed, match="certificate verify failed"):
            there.post("msg_1", BODY, AT)  # nobody knows who signed it
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        there.post("msg_2", BODY, AT)
        with pytest.raises(WebhookFailed, match="certificate"):
            Endpoint(f"https://others.example.test:{receiver.port}/", SECRET, internal=True).post(
                "msg_3", BODY, AT
            )
        assert [taken.headers["webhook-id"] for taken in receiver.taken] == ["msg_2"]
