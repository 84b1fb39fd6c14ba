"""Schemathesis over the OpenAPI document: whatever is sent, no answer is a fault, and each is what the document says. By operation, and
from one to the next by the links between them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.schemas import OpenApiSchema

from lateshift.api.application import make_api, with_document
from lateshift.api.bounds import Bounds
from lateshift.api.openapi import document
from lateshift.api.routes.all import ROUTES
from lateshift.model.access import Scope
from lateshift.model.ids import new_job_id
from lateshift.model.triggering.trigger import Arrival, NewTrigger, Refused
from lateshift.testing import Kit
from tests.api.asking import token_of
from tests.api.running import running
from tests.api.shop import Shop

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
NOWHERE = "01900000-0000-7000-8000-000000000000"
EACH = int(os.environ.get("LATESHIFT_EXAMPLES", "30"))  # requests of one operation
STEPS, WALKS = 12, 2  # at most, of each of as many seeds
BRIEF = Bounds(
    stream=timedelta(seconds=0.1)
)  # streams would be listened to for as long as a request may take
QUIET = [
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.function_scoped_fixture,
]
SETTLED = settings(
    max_examples=EACH,
    deadline=None,
    derandomize="LATESHIFT_EXAMPLES" not in os.environ,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=QUIET,
)


@pytest.fixture
def schema(kit: Kit, shop: Shop) -> OpenApiSchema:
    """The document, with names and ids of what is there, and of what is not."""
    made: dict[str, Any] = document(with_document(ROUTES))
    known = stocked(kit, shop)
    for path, item in made["paths"].items():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path" and parameter["name"] in ("name", "id"):
                    parameter["schema"] = {"enum": known[path.split("/")[2]]}
                if parameter["name"] == "wait":  # of 20 s that it may ask for
                    parameter["schema"] |= {"maximum": 0.1}
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    return schemathesis.openapi.from_dict(made, config=config)


def stocked(kit: Kit, shop: Shop) -> dict[str, list[str]]:
    """Something of everything, by the first word of its path."""
    dead, waiting = (
        shop.send.enqueue("nobody"),
        shop.thumbnail.options(delay=timedelta(days=1)).enqueue("cat.png"),
    )
    held, open_run = shop.order.enqueue(1, "bad"), shop.order.enqueue(2)
    batch = kit.app.batch([shop.send.call("nobody"), shop.send.call("ann")])
    shop.pay.enqueue()
    kit.drain()
    kit.travel(seconds=1)
    hook = NewTrigger(name="orders", kind="webhook", about="POST /hooks/orders", task="send")
    kit.app.store.triggers.declare([hook], app="shop", whole=False)
    refused = Refused(id=new_job_id(), raw=b"x", rest=b'{"kind":"Message","seen":{}}', reason="no JSON")
    kit.app.store.triggers.receive("orders", [Arrival(event="1", refused=refused)], keep=timedelta(days=1))
    token_of(kit.app, "spare", [Scope.READ])
    spare = kit.app.store.tokens.named("spare")
    assert spare is not None
    jobs = [str(job.id) for job in (dead, waiting, held)]
    return {
        "jobs": [*jobs, NOWHERE, "x"], "workflows": [str(held.id), str(open_run.id), NOWHERE], "batches": [str(batch.id), NOWHERE],
        "refused": [str(refused.id), NOWHERE], "tokens": [str(spare.id), NOWHERE], "tasks": ["send", "order", "thumbnail", "nothing"],
        "schedules": ["news", "x", "a/b"], "queues": ["mail", "images", "a b"], "triggers": ["orders", "x"], "pipelines": ["x"],
        "breakers": ["pay", "x"], "orders": ["orders"], "{name}": ["orders", "x"],
    }  # fmt: skip


@pytest.fixture
def session(kit: Kit) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {token_of(kit.app, 'all', [Scope.ADMIN])}"
        yield session


@pytest.mark.slow
@pytest.mark.timeout(20 * EACH)
def test_whatever_is_sent_no_answer_is_a_fault_and_each_is_as_documented(
    kit: Kit, schema: OpenApiSchema, session: requests.Session
) -> None:
    with running(make_api(kit.app, bounds=BRIEF)) as port:
        for found in schema.get_all_operations():
            assert isinstance(found, Ok)

            @SETTLED
            @given(case=found.ok().as_strategy())
            def ask(case: Any) -> None:
                case.call_and_validate(
                    base_url=f"http://127.0.0.1:{port}", session=session, checks=CHECKS, timeout=30
                )

            ask()


@pytest.mark.slow
@pytest.mark.timeout(20 * EACH)
def test_from_one_answer_to_the_next_no_answer_is_a_fault(
    kit: Kit, schema: OpenApiSchema, session: requests.Session
) -> None:
    asked = 0
    faults: list[Exception] = []
    with running(make_api(kit.app, bounds=BRIEF)) as port:
        others = schema.exclude(
            operation_id="revoke_token"
        )  # it finds the token that it asks with, and ends there

        class Walk(others.as_state_machine()):  # type: ignore[misc]
            def get_call_kwargs(self, case: Any) -> dict[str, Any]:
                return {"base_url": f"http://127.0.0.1:{port}", "session": session, "timeout": 30}

            def validate_response(self, response: Any, case: Any, **options: Any) -> None:
                nonlocal asked
                asked += 1
                try:
                    case.validate_response(response, checks=CHECKS)
                except (
                    Exception
                ) as fault:  # not raised: the same walk would be answered otherwise the second time
                    faults.append(fault)

        for number in range(EACH):
            # Hypothesis may begin a walk like one before, and stops where the store has changed since. Then the next begins.
            with suppress(FlakyStrategyDefinition):
                walks = settings(SETTLED, max_examples=WALKS, stateful_step_count=STEPS)
                seed(number)(Walk).run(settings=walks)
    assert not faults, faults[0]
    assert asked > EACH * STEPS


def test_events_are_as_documented(
    kit: Kit, shop: Shop, schema: OpenApiSchema, session: requests.Session
) -> None:
    """By chance the others come by a job that has some."""
    job = shop.send.options(reply_to="channel:mail").enqueue("ann")
    kit.drain()
    with running(make_api(kit.app)) as port:
        case = schema["/v1/jobs/{id}/events"]["GET"].Case(path_parameters={"id": str(job.id)})
        answer = case.call(base_url=f"http://127.0.0.1:{port}", session=session, timeout=30)
        assert answer.text.count("\ndata: ") >= 3
        case.validate_response(answer, checks=CHECKS)
