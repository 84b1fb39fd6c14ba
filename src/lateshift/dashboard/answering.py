"""One page, or one form, on its way through: who asks, what is asked, the handler, the template. What goes wrong is a page too."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from starlette.datastructures import URL
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import compile_path

from lateshift.api.answering import blamed, handled, problem_in
from lateshift.api.application import not_there
from lateshift.api.authentication import Doorkeeper
from lateshift.api.bounds import BOUNDS
from lateshift.api.problem import Problem, Refused, refused_by
from lateshift.api.reading import address_of, bytes_of, fitting_form, paths_of, query_of
from lateshift.api.route import Answer, Asked, Route, may
from lateshift.app import Lateshift
from lateshift.dashboard.page import Action, Page, navigation
from lateshift.dashboard.rendering import render
from lateshift.dashboard.session import Cookies, form_proof, require_own_page, require_proof
from lateshift.dashboard.signing_in import SignIn
from lateshift.errors import LateshiftError
from lateshift.model.access import Token, standing
from lateshift.runtime.aside import aside

HTML = "text/html; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
}  # fmt: skip
FIELDS_MOST = 1_000  # of one form
NEXT_LIMIT = 2_000  # characters of where somebody was going
MISREAD = (403, 404, 422)  # what a query that is refused may be answered with

Handler = Callable[[Request], Awaitable[Response]]


class NotSignedIn(Exception):
    """There is no cookie, or its token is good for nothing any more."""


class Pages:
    """All pages of an app, for one server."""

    def __init__(
        self, app: Lateshift, doorkeeper: Doorkeeper, sign_in: SignIn, cookies: Cookies, pages: Sequence[Page]
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._sign_in = sign_in
        self._cookies = cookies
        self._pages = pages
        self._paths = [compile_path(page.path)[0] for page in pages]

    def routes(self) -> list[StarletteRoute]:
        made = [
            _route("GET", "/sign-in", self._guarded(self._show_sign_in)),
            _route("POST", "/sign-in", self._guarded(self._signed_in)),
            _route("POST", "/sign-out", self._guarded(self._sign_out)),
        ]
        for page in self._pages:
            page.route.check()
            for name, action in page.actions.items():
                action.route.check()
                made.append(_route("POST", page.action_path(name), self._doing(page, name, action)))
            made.append(_route("GET", page.path, self._showing(page)))
        return made

    def _showing(self, page: Page) -> Handler:
        async def show(request: Request) -> Response:
            text, token = await self._admitted(request, page.route)
            said = self._cookies.said(request, text)
            try:
                response = await self._shown(request, page, text, token, said=said)
            except (Refused, LateshiftError) as error:
                response = await self._misread(request, page, text, token, error)
            if said is not None:
                self._cookies.heard(response)
            return response

        return self._guarded(show)

    def _doing(self, page: Page, name: str, action: Action) -> Handler:
        async def do(request: Request) -> Response:
            require_own_page(request)
            text, token = await self._admitted(request, action.route)
            form = await _form(request)
            require_proof(text, form.pop("proof", ""))
            asked = self._asked(request, action.route, token)
            try:
                asked.body = fitting_form(action.body(form), action.route.takes)
                given = await handled(action.route, asked)
            except (Refused, LateshiftError) as error:
                problem, _ = problem_in(error, page.action_path("…"))
                return await self._shown(request, page, text, token, problem=problem, typed=form)
            result = given.body if isinstance(given, Answer) else given
            if action.shows is not None:
                return self._rendered(page, action.shows, text, token, {"result": result, "typed": form})
            own = quote(request.scope["path"].rsplit("/", name.count("/") + 1)[0]) or "/"
            to = action.leads(result) if action.leads else own
            response = RedirectResponse(URL(to), 303, HEADERS)
            self._cookies.say(response, text, action.says(result))
            return response

        return self._guarded(do)

    async def _shown(
        self,
        request: Request,
        page: Page,
        text: str,
        token: Token,
        *,
        said: str | None = None,
        problem: Problem | None = None,
        typed: Mapping[str, str] | None = None,
        misread: bool = False,
    ) -> Response:
        """The page; after a form that was refused, with what was typed. Fields of a filter that were left empty say nothing. `misread`:
        it is the filter that was refused."""
        asked = self._asked(request, page.route, token)
        pairs = request.query_params.multi_items() if problem is None else ()
        asked.query = query_of([(name, value) for name, value in pairs if value != ""], page.asks)
        context = await handled(page.route, asked)
        more = {"said": said, "problem": problem, "typed": typed or {}, "misread": misread}
        return self._rendered(
            page, page.template, text, token, context | more, problem.status if problem else 200
        )

    async def missing(self, request: Request, error: Exception) -> Response:
        """For a person who mistyped an address a page; for a program what the API says."""
        wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if not wants_page or getattr(error, "status_code", None) != 404:
            return await not_there(request, error)
        lost = Refused(404, "not-found", "There is no page at this address.").problem
        html = render("problem.html", app_name=self._app.name, problem=lost)
        return Response(html, 404, HEADERS, HTML)

    async def _misread(
        self, request: Request, page: Page, text: str, token: Token, error: Refused | LateshiftError
    ) -> Response:
        """The page without what the query asked, with why that is refused and what was typed. Raises the error if it is not the query
        that is refused, but the page."""
        typed = dict(request.query_params)
        refused = error if isinstance(error, Refused) else refused_by(error)
        if not typed or refused is None or refused.problem.status not in MISREAD:
            raise error
        problem = refused.problem
        try:
            return await self._shown(request, page, text, token, problem=problem, typed=typed, misread=True)
        except (Refused, LateshiftError):
            raise error from None

    def _rendered(
        self,
        page: Page,
        template: str,
        text: str,
        token: Token,
        context: Mapping[str, Any],
        status: int = 200,
    ) -> Response:
        now = self._app.store.clock.now()
        sees = {each.path for each in self._pages if may(token, each.route, self._app) is None}
        html = render(
            template,
            **{"said": None, "problem": None, "typed": {}, "misread": False} | dict(context),
            page=page, sees=sees, navigation=navigation(self._pages, sees), app_name=self._app.name, token=token, proof=form_proof(text),
            now=now, allowed=lambda name, besides=False: _allowed(token, page.actions[name].route, now, besides=besides),
        )  # fmt: skip
        return Response(html, status, HEADERS, HTML)

    def _asked(self, request: Request, route: Route, token: Token) -> Asked:
        return Asked(
            app=self._app, route=route, token=token, path=paths_of(request), query=None, body=None, key=None
        )

    async def _admitted(self, request: Request, route: Route) -> tuple[str, Token]:
        text = self._cookies.token(request)
        if not text:
            raise NotSignedIn
        try:
            return text, await self._doorkeeper.admit([f"Bearer {text}"], route, address_of(request))
        except Refused as refused:
            if refused.problem.status == 401:
                raise NotSignedIn from None
            raise

    async def _show_sign_in(self, request: Request) -> Response:
        """Looking changes nothing: the link is used up by the button."""
        asked = request.query_params
        return self._sign_in_page(asked.get("code", ""), self._own_page(asked.get("next", "")))

    async def _signed_in(self, request: Request) -> Response:
        require_own_page(request)
        form = await _form(request)
        to = self._own_page(form.get("next", ""))
        try:
            token, text = await self._sign_in.by(form, address_of(request))
        except (Refused, LateshiftError) as error:
            return self._sign_in_page("", to, problem_in(error, "/sign-in")[0])
        await aside(self._app.store.audit.record, "sign in", f"token {token.name}", by=f"token {token.name}")
        response = RedirectResponse(URL(to or "/"), 303, HEADERS)
        self._cookies.sign_in(response, text)
        return response

    async def _sign_out(self, request: Request) -> Response:
        """The browser's own token is good for nothing from then on."""
        require_own_page(request)
        text = self._cookies.token(request)
        require_proof(text, (await _form(request)).get("proof", ""))
        token = await self._doorkeeper.who(f"Bearer {text}", address=address_of(request))
        await aside(self._app.store.tokens.revoke, token.id, by=f"token {token.name}")
        response = RedirectResponse(URL("/sign-in"), 303, HEADERS)
        self._cookies.sign_out(response)
        return response

    def _sign_in_page(self, code: str, to: str, problem: Problem | None = None) -> Response:
        html = render("sign_in.html", app_name=self._app.name, code=code, to=to, problem=problem)
        return Response(html, problem.status if problem else 200, HEADERS, HTML)

    def _own_page(self, asked: str) -> str:
        """Where somebody was going, if that is a page of ours; else nothing. What it is led to is made of the parts that were looked
        at, so that no browser reads another server into it."""
        try:
            parts = urlsplit(asked if len(asked) <= NEXT_LIMIT else "")
        except ValueError:
            return ""
        if parts.scheme or parts.netloc or not any(each.fullmatch(parts.path) for each in self._paths):
            return ""
        return quote(unquote(parts.path)) + (f"?{parts.query}" if parts.query else "")

    def _door_before(self, request: Request) -> str:
        """Where one signs in, to go on from there to what was asked for. A form is not sent again."""
        if request.method != "GET" or request.url.path == "/":
            return "/sign-in"
        query = request.scope["query_string"].decode("latin-1")
        to = self._own_page(quote(request.scope["path"]) + (f"?{query}" if query else ""))
        return f"/sign-in?{urlencode({'next': to})}" if to else "/sign-in"

    def _guarded(self, inner: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                async with asyncio.timeout(BOUNDS.deadline.total_seconds()):
                    return await inner(request)
            except NotSignedIn:
                return RedirectResponse(URL(self._door_before(request)), 303, HEADERS)
            except ClientDisconnect:
                return Response(None, 400)  # nobody reads it
            except Exception as error:
                problem, headers = problem_in(blamed(error, request), f"{request.method} {request.url.path}")
                html = render("problem.html", app_name=self._app.name, problem=problem)
                return Response(html, problem.status, {**HEADERS, **headers}, HTML)

        return answer


def _route(method: str, path: str, handler: Handler) -> StarletteRoute:
    return StarletteRoute(path, handler, methods=[method])


async def _form(request: Request) -> dict[str, str]:
    """What was typed. A field that stands more than once is the texts joined by commas. Raises Refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "unsupported-media-type", "Forms are sent as browsers send them.")
    raw = await bytes_of(request, BOUNDS.body)
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=FIELDS_MOST)
    except ValueError as error:
        raise Refused(422, "form-invalid", f"The form cannot be read: {error}.") from None
    form: dict[str, str] = {}
    for name, value in pairs:
        form[name] = f"{form[name]},{value}" if name in form else value
    return form


def _allowed(token: Token, route: Route, now: datetime, *, besides: bool) -> bool:
    """Whether its button is shown. `besides`: for what the second scope is asked for."""
    scopes = [*route.always, *([route.besides] if besides and route.besides is not None else [])]
    return bool(scopes) and all(standing(token, scope, now) is None for scope in scopes)
