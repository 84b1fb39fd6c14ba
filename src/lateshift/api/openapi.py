"""The OpenAPI 3.1 document, made of the routes and their types. It cannot say anything else than what the code does."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from lateshift.api.asked import Asked
from lateshift.api.bounds import LAST_EVENT_LIMIT
from lateshift.api.problem import PROBLEM, Problem
from lateshift.api.reading import JSON
from lateshift.api.route import EVENT_STREAM, PUBLIC, Reach, Route
from lateshift.model.access import Scope

PATH = "/v1/openapi.json"
_REFERENCES = "#/components/schemas/{name}"
_ID = {"type": "string", "format": "uuid"}
_KEY = {
    "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "description": "The same key again is the same request: it is done once.",
}  # fmt: skip

_LAST = {
    "name": "Last-Event-ID", "in": "header", "schema": {"type": "string", "maxLength": LAST_EVENT_LIMIT},
    "description": "The id of the last event that was received: the stream goes on after it.",
}  # fmt: skip


def document_route(routes: Sequence[Route]) -> Route:
    """The route that gives the document about these and itself."""
    made: dict[str, Any] = {}

    def openapi(asked: Asked) -> dict[str, Any]:
        """This document."""
        return made

    route = Route(
        method="GET", path=PATH, handler=openapi, gives=dict[str, Any], scope=Scope.READ, reach=Reach.OWN
    )
    made.update(document([*routes, route]))
    return route


def document(routes: Sequence[Route]) -> dict[str, Any]:
    kinds: list[Any] = [Problem]
    for route in routes:
        kinds += [kind for kind in (route.gives, route.takes) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REFERENCES)
    schema_of = {_name(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, Any] = {}
    parameter_of = {_id(route): route.parameters[0] for route in routes if route.parameters}
    for route in routes:
        paths.setdefault(route.shown_path, {})[route.method.lower()] = _operation(
            route, schema_of, parameter_of
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lateshift",
            "version": _version(),
            "description": "Background jobs over HTTP. See docs/api.md.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "lsh_…"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, schema_of: dict[str, Any], parameter_of: dict[str, str]) -> dict[str, Any]:
    summary, _, rest = route.about.partition("\n")
    problems = {
        "description": "Why it was not done.",
        "content": {PROBLEM: {"schema": schema_of[_name(Problem)]}},
    }
    said: dict[str, Any] = {
        "operationId": _id(route),
        "summary": summary,
        "responses": {
            str(route.status): {
                "description": "Done.", "content": _content(route, schema_of), **_headers(route),
            },
            "default": problems,
        },
    }  # fmt: skip
    if route.links:
        said["responses"][str(route.status)]["links"] = _links(route, parameter_of)
    if rest.strip():
        said["description"] = " ".join(rest.split())
    if route.method == "GET" and not route.stream:
        said["responses"]["304"] = {"description": "As If-None-Match has it."}
    if route.ends:
        said["responses"]["204"] = {
            "description": "It has ended, and Last-Event-ID is its last event: ask no more."
        }
    if parameters := [
        *_path(route),
        *_query(route),
        *([_KEY] if route.method == "POST" and route.scope != PUBLIC else []),
        *([_LAST] if route.stream else []),
    ]:
        said["parameters"] = parameters
    if route.takes is not None:
        said["requestBody"] = {
            "required": bool(
                msgspec.json.schema_components([route.takes])[1][route.takes.__name__].get("required")
            ),
            "content": {JSON: {"schema": schema_of[_name(route.takes)]}},
        }
    if route.raw:
        said["requestBody"] = {"required": True, "content": {"*/*": {"schema": {"type": "string"}}}}
    if route.scope == PUBLIC:
        said["security"] = []
    else:
        said["x-scope"], said["x-queues"] = str(route.scope), str(route.reach)
    if route.besides is not None:
        said["x-scope-besides"] = {
            "scope": str(route.besides),
            "for": route.besides_in_words or "every request",
        }
    return said


def _id(route: Route) -> str:
    return str(getattr(route.handler, "__name__", ""))


def _links(route: Route, parameter_of: dict[str, str]) -> dict[str, Any]:
    """By the first parameter of the path of each."""
    return {
        name: {"operationId": name, "parameters": {parameter_of[name]: f"$response.body#/{place}"}}
        for name, place in route.links.items()
        if name in parameter_of
    }


def _content(route: Route, schema_of: dict[str, Any]) -> dict[str, Any]:
    """Of a stream, each event. What is neither that nor JSON is text."""
    given = schema_of[_name(route.gives)]
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": given}
    schemas = {
        JSON: given,
        EVENT_STREAM: {"type": "object", "properties": {"id": {"type": "string"}, "data": data}, "required": ["id", "data"]},
    }  # fmt: skip
    return {kind: {"schema": schemas.get(kind, {"type": "string"})} for kind in route.media}


def _headers(route: Route) -> dict[str, Any]:
    names = ["Location"] if route.locates else []
    names += ["Retry-After"] if route.status == 202 else []
    names += ["ETag"] if route.method == "GET" and not route.stream else []
    return {"headers": {name: {"schema": {"type": "string"}} for name in names}} if names else {}


def _path(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _ID if name == "id" else {"type": "string", "minLength": 1},
        }
        for name in route.parameters
    ]


def _query(route: Route) -> list[dict[str, Any]]:
    if route.asks is None:
        return []
    _, components = msgspec.json.schema_components([route.asks])
    fields = components[route.asks.__name__]
    return [
        {"name": name, "in": "query", "required": name in fields.get("required", ()), "schema": schema}
        for name, schema in fields["properties"].items()
    ]


def _name(kind: Any) -> str:
    return repr(kind)


def _version() -> str:
    try:
        return version("lateshift")
    except PackageNotFoundError:
        return "0"
