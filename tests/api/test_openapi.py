"""The OpenAPI document says what the code does."""

import json
from typing import Any

from lateshift.api.application import with_document
from lateshift.api.routes.all import ROUTES
from tests.api.asking import Web


def references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if "$ref" in part else []
        return own + [each for value in part.values() for each in references(value)]
    return [each for value in part for each in references(value)] if isinstance(part, list) else []


def test_the_document_has_every_route_its_types_and_who_may(web: Web) -> None:
    document = web("GET", "/v1/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    said = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert said == {(route.method, route.shown_path) for route in with_document(ROUTES)}
    for reference in references(document):
        _, components, schemas, name = reference.split("/")
        assert name in document[components][schemas], reference
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    start = document["paths"]["/v1/tasks/{name}/jobs"]["post"]
    assert start["x-scope"] == "enqueue"
    assert "x-scope-besides" not in start
    edit = document["paths"]["/v1/schedules/{name}/edit"]["post"]
    assert edit["x-scope-besides"] == {"scope": "enqueue", "for": "arguments or tick_as"}
    assert {each["name"] for each in start["parameters"]} == {"name", "Idempotency-Key"}
    assert "202" in start["responses"]
    assert document["paths"]["/health/live"]["get"]["security"] == []
    listing = document["paths"]["/v1/jobs"]["get"]["parameters"]
    assert {each["name"]: each["required"] for each in listing}["queue"] is False
    heard = document["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]["text/event-stream"][
        "schema"
    ]
    assert heard["properties"]["data"]["contentSchema"] == {"$ref": "#/components/schemas/JobEvent"}
    assert ":path" not in json.dumps(document)
