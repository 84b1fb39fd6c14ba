"""One page, or one form, on its way through: who asks, what is asked, the handler, the template. What goes wrong is a page too."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from starlette.datastructures import URL
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as StarletteRoute

from lateshift.api.admission import Admission
from lateshift.api.answering import blamed, handled, problem_in
from lateshift.api.application import not_there
from lateshift.api.authentication import Doorkeeper
from lateshift.api.bounds import BOUNDS, QUESTION_LIMIT
from lateshift.api.budget import Share
from lateshift.api.pieces import in_pieces
from lateshift.api.problem import Problem, Refused, refused_by
from lateshift.api.reading import address_of, fitting_form, paths_of, query_of
from lateshift.api.route import Answer, Asked, Reach, Route, may
from lateshift.app.app import Lateshift
from lateshift.dashboard.door import Door
from lateshift.dashboard.forms import form_of
from lateshift.dashboard.page import Action, Elsewhere, Page, navigation
from lateshift.dashboard.rendering import HEADERS, HTML, render
from lateshift.dashboard.session import CROSS_SITE, Cookies, form_proof, require_proof
from lateshift.dashboard.signing_in import SignIn
from lateshift.errors import LateshiftError
from lateshift.model.access import Scope, Token, standing
from lateshift.runtime.aside import aside
from lateshift.store.urls import shown

TOLD_INSIDE = (403, 404, 409, 415, 422)  # what is told beside the menu
LETTERS_COUNTED = 100  # dead letters that the menu counts
MISREAD = (403, 404, 422)  # what a query that is refused may be answered with

Handler = Callable[[Request], Awaitable[Response]]
NOWHERE = Page(
    path="", title="", section="", template="refused.html", handler=lambda asked: {}, scope=Scope.READ, reach=Reach.OWN
)  # fmt: skip


class NotSignedIn(Exception):
    """There is no cookie."""


class Pages:
    """All pages of an app, for one server."""

    def __init__(
        self, app: Lateshift, doorkeeper: Doorkeeper, sign_in: SignIn, cookies: Cookies, pages: Sequence[Page]
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._cookies = cookies
        self._pages = pages
        self._door = Door(app, doorkeeper, sign_in, cookies, [page.path for page in pages])

    def routes(self) -> list[StarletteRoute]:
        made = [
            _route("GET", "/sign-in", self._guarded(self._door.show)),
            _route("POST", "/sign-in", self._guarded(self._door.enter)),
            _route("POST", "/sign-out", self._guarded(self._door.leave)),
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
            text, admission = await self._admitted(request, page.route)
            said = self._cookies.said(request, text)
            try:
                response = await self._shown(request, page, text, admission, said=said)
            except (Refused, LateshiftError) as error:
                response = await self._misread(request, page, text, admission, error)
            if said is not None:
                self._cookies.heard(response)
            return response

        return self._guarded(show, page)

    def _doing(self, page: Page, name: str, action: Action) -> Handler:
        async def answer(request: Request) -> Response:
            self._cookies.require_own_page(request)
            text, admission = await self._admitted(request, action.route)
            token = admission.token
            assert token is not None, "pages are for those who are signed in"
            share = self._doorkeeper.budgets.known.share(token.root)
            try:
                return await do(request, text, admission, token, share)
            finally:
                share.end()

        async def do(
            request: Request, text: str, admission: Admission, token: Token, share: Share
        ) -> Response:
            form = await form_of(request, share=share)
            require_proof(text, form.pop("proof", ""))
            question, verb = form.pop("question", ""), form.pop("verb", "")
            if question:
                _refuse_long(question, verb, form)
                to, back = quote(request.scope["path"]), _own_path(request, name)
                asked_first = {"question": question, "verb": verb, "to": to, "fields": form, "back": back}
                asks = await self._rendered(request, page, "confirm.html", text, token, asked_first)
                return self._in_pieces(asks, token)
            asked = self._asked(request, action.route, token)
            try:
                asked.body = fitting_form(action.body(form), action.route.takes)
                given = await handled(action.route, asked, admission)
            except (Refused, LateshiftError) as error:
                if _is_let_in_no_more(error) or may(token, page.route, self._app) is not None:
                    raise  # who may send the form need not be one who may see the page
                problem, _ = problem_in(error, page.action_path("…"))
                return await self._shown(
                    request, page, text, admission, problem=problem, typed=form, place=action.place, here=_own_path(request, name)
                )  # fmt: skip
            result = given.body if isinstance(given, Answer) else given
            if action.shows is not None:
                shown = await self._rendered(
                    request, page, action.shows, text, token, {"result": result, "typed": form}
                )
                return self._in_pieces(shown, token, done=action.route.does(asked.body))
            to = action.leads(result, form) if action.leads else _own_path(request, name)
            response = RedirectResponse(URL(to), 303, HEADERS)
            self._cookies.say(response, text, action.says(result))
            return response

        return self._guarded(answer, page)

    async def _shown(
        self,
        request: Request,
        page: Page,
        text: str,
        admission: Admission,
        *,
        said: str | None = None,
        problem: Problem | None = None,
        typed: Mapping[str, str] | None = None,
        misread: bool = False,
        place: str = "",
        here: str = "",
    ) -> Response:
        """The page; after a form that was refused, with what was typed. Fields of a filter that were left empty say nothing. `misread`:
        it is the filter that was refused. `here`: where the page is, if not at the address that was asked."""
        token = admission.token
        assert token is not None
        asked = self._asked(request, page.route, token)
        pairs = request.query_params.multi_items() if problem is None else ()
        asked.query = query_of([(name, value) for name, value in pairs if value != ""], page.asks)
        context = await handled(page.route, asked, admission)
        if isinstance(context, Elsewhere):
            return RedirectResponse(URL(context.path), 303, HEADERS)
        more = {
            "said": said,
            "problem": problem,
            "typed": typed or {},
            "misread": misread,
            "place": place,
            "here": here,
        }
        answer = await self._rendered(
            request, page, page.template, text, token, context | more, problem.status if problem else 200
        )
        return self._in_pieces(answer, token)

    def _in_pieces(self, answer: Response, token: Token, *, done: bool = False) -> Response:
        """`done`: it tells what was done, and is refused to nobody. Raises Refused."""
        return in_pieces(answer, self._doorkeeper.budgets.answers, token.root, done=done)

    async def missing(self, request: Request, error: Exception) -> Response:
        """For a person who mistyped an address a page; for a program what the API says."""
        wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if not wants_page or getattr(error, "status_code", None) != 404:
            return await not_there(request, error)
        return await self._told(
            request, Refused(404, "not-found", "There is no page at this address.").problem, NOWHERE
        )

    async def _told(self, request: Request, problem: Problem, page: Page) -> Response:
        """What went wrong, beside the menu for whoever is signed in. Where the server itself is at a loss nobody is looked up, and to
        what another site has sent nothing of anybody is shown."""
        inside = problem.status in TOLD_INSIDE and not problem.type.endswith(CROSS_SITE)
        there = await self._door.who(request) if inside else None
        if there is not None:
            return await self._rendered(
                request, page, "refused.html", *there, {"problem": problem}, problem.status
            )
        html = render("problem.html", app_name=self._app.name, problem=problem)
        return Response(html, problem.status, HEADERS, HTML)

    async def _misread(
        self, request: Request, page: Page, text: str, admission: Admission, error: Refused | LateshiftError
    ) -> Response:
        """The page without what the query asked, with why that is refused and what was typed. Raises the error if it is not the query
        that is refused, but the page."""
        typed = dict(request.query_params)
        refused = error if isinstance(error, Refused) else refused_by(error)
        if not typed or refused is None or refused.problem.status not in MISREAD:
            raise error
        problem = refused.problem
        try:
            return await self._shown(
                request, page, text, admission, problem=problem, typed=typed, misread=True, place=page.place
            )
        except (Refused, LateshiftError):
            raise error from None

    async def _rendered(
        self,
        request: Request,
        page: Page,
        template: str,
        text: str,
        token: Token,
        context: Mapping[str, Any],
        status: int = 200,
    ) -> Response:
        now = self._app.store.clock.now()
        sees = {each.path for each in self._pages if may(token, each.route, self._app) is None}
        letters = await aside(self._letters, request, sees, token)
        html = render(
            template,
            **{"said": None, "problem": None, "typed": {}, "misread": False, "place": "", "here": ""} | dict(context),
            page=page, sees=sees, letters=letters,
            store_name="" if token.queues else shown(self._app.settings.store), navigation=navigation(self._pages, sees), app_name=self._app.name, token=token, proof=form_proof(text),
            now=now, allowed=lambda name, besides=False: _allowed(token, page.actions[name].route, now, besides=besides),
        )  # fmt: skip
        return Response(html, status, HEADERS, HTML)

    def _letters(self, request: Request, sees: set[str], token: Token) -> str:
        """How many dead letters the menu tells of: those who see all. Not where a page that is open looks again, which leaves its menu alone."""
        if "hx-request" in request.headers or "/dead-letters" not in sees or token.queues:
            return ""
        count, more = self._app.store.reports.count_dead(LETTERS_COUNTED)
        return (
            f"{count}{'+' if more else ''}" if count or more else ""
        )  # 0+: none of the newest, and there are older ones

    def _asked(self, request: Request, route: Route, token: Token) -> Asked:
        return Asked(
            app=self._app, route=route, token=token, path=paths_of(request), query=None, body=None, key=None
        )

    async def _admitted(self, request: Request, route: Route) -> tuple[str, Admission]:
        text = self._cookies.token(request)
        if not text:
            raise NotSignedIn
        token = await self._doorkeeper.admit([f"Bearer {text}"], route, address_of(request))
        return text, Admission(self._doorkeeper, route, token)

    def _guarded(self, inner: Handler, page: Page = NOWHERE) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                async with asyncio.timeout(BOUNDS.deadline.total_seconds()):
                    return await inner(request)
            except NotSignedIn:
                return RedirectResponse(URL(self._door.before(request)), 303, HEADERS)
            except ClientDisconnect:
                return Response(None, 400)  # nobody reads it
            except Exception as error:
                if page is not NOWHERE and _is_let_in_no_more(error):
                    return RedirectResponse(URL(self._door.before(request)), 303, HEADERS)
                problem, headers = problem_in(blamed(error, request), f"{request.method} {request.url.path}")
                response = await self._told(request, problem, page)
                response.headers.update(headers)
                return response

        return answer


def _route(method: str, path: str, handler: Handler) -> StarletteRoute:
    return StarletteRoute(path, handler, methods=[method])


def _is_let_in_no_more(error: Exception) -> bool:
    """At the door, or later: the token was good for less than the request took."""
    refused = refused_by(error) if isinstance(error, LateshiftError) else error
    return isinstance(refused, Refused) and refused.problem.status == 401


def _refuse_long(question: str, verb: str, form: Mapping[str, str]) -> None:
    """A question repeats what was typed. Raises Refused."""
    size = sum(map(len, (question, verb, *form, *form.values())))
    if size > QUESTION_LIMIT:
        raise Refused(
            413, "form-too-large",
            f"What is asked about first has at most {QUESTION_LIMIT:,} characters, and this has {size:,}. Nothing was done: send less, or with scripts, which ask by themselves.",
        )  # fmt: skip


def _own_path(request: Request, action: str) -> str:
    """Of the page whose form was sent."""
    return quote(request.scope["path"].rsplit("/", action.count("/") + 1)[0]) or "/"


def _allowed(token: Token, route: Route, now: datetime, *, besides: bool) -> bool:
    """Whether its button is shown. `besides`: for what the second scope is asked for."""
    scopes = [*route.always, *([route.besides] if besides and route.besides is not None else [])]
    return bool(scopes) and all(standing(token, scope, now) is None for scope in scopes)
