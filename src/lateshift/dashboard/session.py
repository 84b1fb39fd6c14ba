"""Who is signed in: a cookie that holds a token of its own, made for this browser when somebody signed in, and revoked with the
token they signed in with. Forms carry a proof of the same, which another site cannot know."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NoBase64
from datetime import timedelta
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac

from starlette.requests import Request
from starlette.responses import Response

from lateshift.api.problem import Refused

SESSION = timedelta(hours=12)  # after which one signs in again
SAID_LIMIT = 1_000  # characters that an action says on the next page
SAFE = "__Host-lateshift"
CROSS_SITE = "cross-site"  # why a form is refused


class Cookies:
    """`secure`: browsers are reached by TLS, our own or a proxy's. On loopback without it the name has the port, as browsers do not
    keep the cookies of ports apart, and is not `__Host-`, which some browsers refuse there."""

    def __init__(self, *, secure: bool, port: int) -> None:
        self._secure = secure
        self._name = SAFE if secure else f"lateshift-{port}"
        self._said = f"{self._name}-said"

    def token(self, request: Request) -> str:
        """The text of the token in the cookie; empty if there is none."""
        return request.cookies.get(self._name, "")

    def require_own_page(self, request: Request) -> None:
        """Raises Refused if a request that changes something does not come from a page of ours. Browsers say where from in a header
        that pages cannot set; those that do not, say the origin: the scheme, by which they reach us, the host and the port."""
        site = request.headers.get("sec-fetch-site")
        own = f"{'https' if self._secure else 'http'}://{request.headers.get('host', '')}"
        if site == "same-origin" or (site is None and request.headers.get("origin") == own):
            return
        raise Refused(403, CROSS_SITE, "This was sent from a page that is not of this server.")

    def sign_in(self, response: Response, token: str) -> None:
        self._set(response, self._name, token, round(SESSION.total_seconds()))

    def sign_out(self, response: Response) -> None:
        self._set(response, self._name, "", 0)

    def say(self, response: Response, token: str, said: str) -> None:
        """For the next page of the same browser."""
        text = urlsafe_b64encode(json.dumps(said[:SAID_LIMIT]).encode()).decode()
        self._set(response, self._said, f"{text}.{_proof(token, f'said:{text}')}", 60)

    def said(self, request: Request, token: str) -> str | None:
        text, _, proof = request.cookies.get(self._said, "").partition(".")
        if not text or not _same(proof, _proof(token, f"said:{text}")):
            return None
        try:
            return str(json.loads(urlsafe_b64decode(text)))
        except (NoBase64, ValueError):
            return None

    def heard(self, response: Response) -> None:
        self._set(response, self._said, "", 0)

    def _set(self, response: Response, name: str, value: str, seconds: int) -> None:
        response.set_cookie(
            name, value, max_age=seconds, path="/", secure=self._secure, httponly=True, samesite="strict"
        )


def form_proof(token: str) -> str:
    """What every form of a signed-in browser carries."""
    return _proof(token, "form")


def require_proof(token: str, given: str) -> None:
    if not _same(given, form_proof(token)):
        raise Refused(
            403, "form-stale", "The form is of another sign-in. Go back, load the page again, and repeat."
        )


def _same(given: str, proof: str) -> bool:
    """Compared as bytes: what is given may be any text."""
    return compare_digest(given.encode(), proof.encode())


def _proof(token: str, of: str) -> str:
    return hmac(token.encode(), of.encode(), sha256).hexdigest()
