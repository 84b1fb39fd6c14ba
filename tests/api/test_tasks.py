"""What can be started, and what it takes: by the server's code, to whom may see its queues."""

from typing import Any

from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.shop import Shop

SECRET = "whsec_" + "A" * 43 + "="


def test_tasks_are_listed_by_name_with_what_they_take(web: Web, shop: Shop) -> None:
    found = {task["name"]: task for task in web("GET", "/v1/tasks").json()["tasks"]}

    assert list(found) == ["order", "pay", "send", "thumbnail"]
    assert found["send"] == {
        "name": "send", "kind": "task", "queue": "mail", "priority": 0, "attempts": 1, "time_limit_seconds": 3600.0,
        "arguments": {
            "title": "send", "type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"],
            "additionalProperties": False,
        },
    }  # fmt: skip
    assert (found["order"]["kind"], found["order"]["attempts"]) == ("workflow", None)
    assert list(found["order"]["arguments"]["properties"]) == ["number", "card"]
    taken: Any = found["thumbnail"]["arguments"]
    assert taken["required"] == ["path"]
    assert taken["$defs"]["Box"]["required"] == ["width", "height"]
    assert web("GET", "/v1/tasks/thumbnail").json() == found["thumbnail"]


def test_tasks_come_page_by_page(web: Web, shop: Shop) -> None:
    first = web("GET", "/v1/tasks?limit=3").json()
    assert [task["name"] for task in first["tasks"]] == ["order", "pay", "send"]
    rest = web("GET", f"/v1/tasks?limit=3&cursor={first['next']}").json()
    assert ([task["name"] for task in rest["tasks"]], rest["next"]) == (["thumbnail"], None)


def test_a_token_of_some_queues_sees_their_tasks(web: Web, kit: Kit, shop: Shop) -> None:
    text = token_of(kit.app, "mailer", [Scope.READ], ("mail*",))
    assert [task["name"] for task in web("GET", "/v1/tasks", token=text).json()["tasks"]] == ["send"]
    assert web("GET", "/v1/tasks/send", token=text).status_code == 200
    assert web("GET", "/v1/tasks/thumbnail", token=text).status_code == 404
    assert web("GET", "/v1/tasks/nothing", token=text).status_code == 404


def test_what_lateshift_itself_has_as_tasks_is_left_out(web: Web, kit: Kit, shop: Shop) -> None:
    own = kit.app.reply_webhook("https://hooks.example.com", secret=SECRET, name="shop")
    assert own.name not in web("GET", "/v1/tasks").text
    assert web("GET", f"/v1/tasks/{own.name}").status_code == 404


def test_a_schema_that_is_large_is_shown_with_its_task_alone_and_a_foreign_type_is_anything(
    web: Web, kit: Kit, shop: Shop
) -> None:
    class Foreign:
        @classmethod
        def model_validate(cls, value: Any) -> "Foreign":
            return cls()

    names = ", ".join(f"parameter_with_a_long_name_{number}: int" for number in range(200))
    space: dict[str, Any] = {}
    exec(f"def wide({names}) -> None: ...", space)
    kit.app.task(name="wide")(space["wide"])

    def strange(it: Any) -> None: ...

    strange.__annotations__["it"] = Foreign
    kit.app.task(name="strange")(strange)
    found = {task["name"]: task for task in web("GET", "/v1/tasks").json()["tasks"]}
    assert found["wide"]["arguments"] is None
    assert len(web("GET", "/v1/tasks/wide").json()["arguments"]["properties"]) == 200
    assert found["strange"]["arguments"]["properties"]["it"] == {"title": "Foreign"}
