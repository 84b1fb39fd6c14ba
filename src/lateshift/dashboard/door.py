"""The door of the dashboard: who comes in, by a link or a token, where they are led then, and how they leave."""

from collections.abc import Sequence
from urllib.parse import quote, unquote, urlencode, urlsplit

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path

from lateshift.api.answering import problem_in
from lateshift.api.authentication import Doorkeeper
from lateshift.api.bounds import SIGN_IN_LIMIT
from lateshift.api.problem import Problem, Refused
from lateshift.api.reading import address_of
from lateshift.app.app import Lateshift
from lateshift.dashboard.forms import form_of
from lateshift.dashboard.rendering import HEADERS, HTML, render
from lateshift.dashboard.session import Cookies, require_proof
from lateshift.dashboard.signing_in import LINK_USED, SignIn
from lateshift.errors import LateshiftError
from lateshift.model.access import Token
from lateshift.runtime.aside import aside

FROM_ELSEWHERE = ("cross-site", "same-site")  # as browsers tell where a link stands
NEXT_LIMIT = 2_000  # characters of where somebody was going


class Door:
    """Of one server. `paths`: of the pages that somebody may be led to."""

    def __init__(
        self, app: Lateshift, doorkeeper: Doorkeeper, sign_in: SignIn, cookies: Cookies, paths: Sequence[str]
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._sign_in = sign_in
        self._cookies = cookies
        self._paths = [compile_path(path)[0] for path in paths]

    async def show(self, request: Request) -> Response:
        """Looking changes nothing: the link is used up by the button. One that is used up leads on who is signed in already, and
        tells others what to do."""
        code, to = request.query_params.get("code", ""), self._own_page(request.query_params.get("next", ""))
        if not code or self._sign_in.knows(code):
            return self._page(code, to, elsewhere=request.headers.get("sec-fetch-site") in FROM_ELSEWHERE)
        if await self.who(request) is not None:
            return RedirectResponse(URL(to or "/"), 303, HEADERS)
        return self._page("", to, Refused(401, "link-used", LINK_USED).problem)

    async def who(self, request: Request) -> tuple[str, Token] | None:
        """Whoever is signed in, with the text of their token; None if nobody is, or if it cannot be found out."""
        text = self._cookies.token(request)
        if not text:
            return None
        try:
            return text, await self._doorkeeper.admit_to_sign_in(f"Bearer {text}", address_of(request))
        except (Refused, LateshiftError):
            return None

    async def enter(self, request: Request) -> Response:
        self._cookies.require_own_page(request)
        form = await self._form(request)
        to = self._own_page(form.get("next", ""))
        try:
            token, text = await self._sign_in.by(form, address_of(request))
        except (Refused, LateshiftError) as error:
            problem, headers = problem_in(error, "/sign-in")
            refused = self._page("", to, problem)
            refused.headers.update(headers)
            return refused
        await aside(self._app.store.audit.record, "sign in", f"token {token.name}", by=f"token {token.name}")
        response = RedirectResponse(URL(to or "/"), 303, HEADERS)
        self._cookies.sign_in(response, text)
        return response

    async def leave(self, request: Request) -> Response:
        """The browser's own token is good for nothing from then on."""
        self._cookies.require_own_page(request)
        text = self._cookies.token(request)
        require_proof(text, (await self._form(request)).get("proof", ""))
        token = await self._doorkeeper.who(f"Bearer {text}", address=address_of(request))
        await aside(self._app.store.tokens.revoke, token.id, by=f"token {token.name}")
        response = RedirectResponse(URL("/sign-in"), 303, HEADERS)
        self._cookies.sign_out(response)
        return response

    async def _form(self, request: Request) -> dict[str, str]:
        """Of somebody who is not known before it is read."""
        share = self._doorkeeper.budgets.unknown.share(self._doorkeeper.caller(address_of(request)))
        try:
            return await form_of(request, SIGN_IN_LIMIT, share)
        finally:
            share.end()

    def _page(
        self, code: str, to: str, problem: Problem | None = None, *, elsewhere: bool = False
    ) -> Response:
        """`elsewhere`: a link of another site led here, with which a browser sends no cookies: who is signed in looks like who is not."""
        used = problem is not None and problem.detail == LINK_USED
        html = render(
            "sign_in.html",
            app_name=self._app.name,
            code=code,
            to=to,
            problem=problem,
            used=used,
            elsewhere=elsewhere,
        )
        return Response(html, problem.status if problem else 200, HEADERS, HTML)

    def _own_page(self, asked: str) -> str:
        """Where somebody was going, if that is a page of ours; else nothing. What it is led to is made of what was looked at, the path
        as a server reads it, so that no browser reads another server or another page into it."""
        try:
            parts = urlsplit(asked if len(asked) <= NEXT_LIMIT else "")
        except ValueError:
            return ""
        path = unquote(parts.path)
        if parts.scheme or parts.netloc or not any(each.fullmatch(path) for each in self._paths):
            return ""
        if any(part in (".", "..") for part in path.split("/")):  # browsers resolve these, however written
            return ""
        return quote(path) + (f"?{parts.query}" if parts.query else "")

    def before(self, request: Request) -> str:
        """Where one signs in, to go on from there to what was asked for. A form is not sent again."""
        if request.method != "GET" or request.url.path == "/":
            return "/sign-in"
        query = request.scope["query_string"].decode("latin-1")
        to = self._own_page(quote(request.scope["path"]) + (f"?{query}" if query else ""))
        return f"/sign-in?{urlencode({'next': to})}" if to else "/sign-in"
