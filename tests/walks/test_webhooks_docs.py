"""The program of docs/webhooks.md, as it stands there, serves in a process without a worker; and the numbers of the page."""

import hmac
import re
from hashlib import sha256
from pathlib import Path
from time import time

import httpx

from lateshift.model.triggering.sources import MESSAGE_WINDOW
from lateshift.webhooks import TOLERANCE
from tests.walks.commands import completed, eventually, interrupted, started

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()


def test_the_program_of_the_page_takes_a_webhook_without_a_worker(tmp_path: Path, store_url: str) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "shop.py").write_text(program)

    def said() -> str:
        return (tmp_path / "output").read_text()

    settings = {"LATESHIFT_STORE": store_url, "GITHUB_SECRET": "s3cret", "STRIPE_SECRET": "whsec_x"}
    with started("serve", "shop.py", "--port", "0", cwd=tmp_path, **settings) as process:
        eventually(lambda: "http://127.0.0.1:" in said() or process.poll() is not None, "it serves")
        url, *_ = re.findall(r"http://127\.0\.0\.1:\d+", said())
        body = b'{"id": "evt_1"}'
        at = int(time())
        mark = hmac.new(b"whsec_x", f"{at}.".encode() + body, sha256).hexdigest()
        with httpx.Client(base_url=url, trust_env=False) as client:
            headers = {"Stripe-Signature": f"t={at},v1={mark}"}
            first, again = (client.post("/hooks/stripe", content=body, headers=headers) for _ in range(2))
            assert client.post("/hooks/stripe", content=body).status_code == 401
        assert first.json()["created"]
        assert again.json() == {"created": False, "job": first.json()["job"]}
        listed = completed("triggers", "list", cwd=tmp_path, LATESHIFT_STORE=store_url).out
        assert re.search(r"stripe +webhook +1 .*taken at POST /hooks/stripe", listed)
        assert interrupted(process, 20) == 0
    assert "webhook vendor misses VENDOR_SECRET, VENDOR_SECRET_BEFORE" in said()
    assert "whsec_x" not in said()
    assert "s3cret" not in said()


def test_the_numbers_of_the_page() -> None:
    assert f"more than {TOLERANCE.total_seconds() / 60:g} minutes from now" in PAGE
    assert f"| `window` | {MESSAGE_WINDOW.days} days |" in PAGE
