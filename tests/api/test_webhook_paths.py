"""The path of a webhook's URL may be a secret: of a delivery its scheme and host are shown, wherever it is shown."""

from uuid import UUID

import msgspec
import pytest

from lateshift import Lateshift
from lateshift.errors import OptionInvalid
from lateshift.model.edit import Edit
from lateshift.model.sealed import without_path
from lateshift.testing import Kit
from tests.api.asking import Web
from tests.api.shop import Shop
from tests.dashboard.browsing import browsing
from tests.walks.commands import Cli
from tests.walks.conftest import cli

__all__ = ["cli"]

SECRET = "canary-4f1c"
URL = f"http://127.0.0.1:9/hooks/{SECRET}?token={SECRET}"
SHOWN = "http://127.0.0.1:9/…"


@pytest.fixture
def deliveries(app: Lateshift, kit: Kit, shop: Shop) -> list[str]:
    """Of a job that has ended: tried once, in vain. Gives their ids."""
    app.reply_webhook("http://127.0.0.1:9", secret="whsec_" + "A" * 40, internal=True, name="shop")
    shop.send.options(reply_to=URL, reply_on=["completed"]).enqueue("ann")
    kit.drain()
    kit.drain()
    found = [view for view in app.store.reports.unsettled(None, 10) if view.queue == "replies.shop"]
    assert [SECRET in view.payload.decode() for view in found] == [True]
    assert found[0].history
    return [str(view.id) for view in found]


def test_no_answer_shows_where_a_webhook_leads(web: Web, kit: Kit, deliveries: list[str]) -> None:
    [id] = deliveries
    assert web("GET", f"/v1/jobs/{id}").json()["arguments"]["url"] == SHOWN
    web("POST", f"/v1/jobs/{id}/cancel")
    [view] = kit.app.store.reports.named([UUID(id)])
    assert view is not None
    edit = Edit(view.payload, msgspec.json.encode(msgspec.json.decode(view.payload) | {"url": URL + SECRET}))
    assert kit.app.store.jobs.resubmit([view.id], by="an older release", edits={view.id: edit}) == [view.id]
    paths = [f"/v1/jobs/{id}{more}" for more in ("", "/explain", "/logs", "/events")]
    for path in [
        *paths,
        "/v1/jobs",
        "/v1/queues",
        "/v1/audit",
        "/v1/upcoming",
        "/v1/dead-letters",
        "/metrics",
    ]:
        answer = web("GET", path)
        assert (path, answer.status_code, SECRET in answer.text) == (path, 200, False)
    assert web("GET", f"/v1/jobs?argument={SECRET}&since=1d").json()["jobs"] == []
    assert [each["id"] for each in web("GET", "/v1/jobs?queue=replies.shop").json()["jobs"]] == [id]


def test_no_page_and_no_command_shows_where_a_webhook_leads(
    kit: Kit, deliveries: list[str], cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    [id] = deliveries
    with browsing(kit.app) as browser:
        browser.sign_in()
        for path in ("/", "/jobs", f"/jobs/{id}"):
            assert SECRET not in browser.look(path)
    for command in (["jobs", "show", id], ["jobs", "list"], ["jobs", "explain", id], ["jobs", "logs", id]):
        for more in ([], ["--json"]):
            said = cli(*command, *more)
            assert (command, said.code, SECRET in said.out + said.err) == (command, 0, False)


def test_what_a_dead_delivery_would_be_given_is_shown_without_its_path(
    web: Web, kit: Kit, deliveries: list[str]
) -> None:
    kit.travel(days=9)
    preview = web("POST", "/v1/dead-letters/preview", {"queue": "replies.shop"})
    [example] = preview.json()["examples"]
    assert (example["before"]["url"], example["after"]["url"]) == (SHOWN, SHOWN)
    assert SECRET not in preview.text


@pytest.mark.parametrize(
    "reply_to",
    [f"HTTPS://hooks.example.com/{SECRET}", f"ftp://hooks.example.com/{SECRET}", f"https://u:{SECRET}@hooks.example.com/",
     f"https://hooks.example.com/{SECRET}", f"https://hooks.example.com:x{SECRET}/", f"https://[{SECRET}/", f"https:///{SECRET}"],
)  # fmt: skip
def test_a_receiver_that_is_refused_is_not_repeated(app: Lateshift, shop: Shop, reply_to: str) -> None:
    with pytest.raises(OptionInvalid) as refused:
        shop.send.options(reply_to=reply_to)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("payload", [b"1", b"null", b'{"other":1}', b"not json", b'{"url":"http://[x"}'])
def test_what_is_no_call_of_a_delivery_is_shown_as_nothing(payload: bytes) -> None:
    assert without_path(payload) == b'"[sealed]"'
