"""What an operator gives a run: data as JSON, and other arguments for a step that is held."""

from typing import Any

import msgspec

from lateshift.errors import OptionInvalid, PayloadTooLarge
from lateshift.model.depth import PAYLOAD_DEPTH, refuse_deep, too_deep
from lateshift.model.job import PAYLOAD_LIMIT
from lateshift.model.workflow.step import Kind, StepView


def read_json(option: str, text: str) -> Any:
    """Raises OptionInvalid, which says how text is quoted, or where an object or a list is wrong."""
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise too_deep(f"{option} has") from error
    except (msgspec.DecodeError, ValueError) as error:
        if text.lstrip().startswith(("{", "[")):
            wrong = str(error).removeprefix("JSON is malformed: ")
            raise OptionInvalid(
                f"{option}: {text!r} is no JSON: {wrong}. Names and texts stand in double quotes, and the whole in single ones: "
                f'{option} \'{{"card": "new"}}\'.'
            ) from None
        quoted = msgspec.json.encode(text).decode()
        raise OptionInvalid(
            f"{option}: {text!r} is no JSON. Text stands in double quotes: {option} '{quoted}'."
        ) from None


def read_arguments(step: StepView, text: str) -> bytes:
    """By name; of a fan_out the list. Raises OptionInvalid, PayloadTooLarge."""
    found = read_json("--args", text)
    if step.kind is Kind.GATHER:
        if not isinstance(found, list):
            raise OptionInvalid(
                f"--args of a fan_out is a JSON list with an element for each branch, such as '[1, 2]', not {text}."
            )
    elif not isinstance(found, dict):
        raise OptionInvalid(
            f'--args is a JSON object with the arguments by name, such as \'{{"card": "new"}}\', not {text}.'
        )
    payload = msgspec.json.encode(found)
    if len(payload) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(f"--args is {len(payload):,} bytes, over the limit of {PAYLOAD_LIMIT:,}.")
    refuse_deep(payload, "--args has", PAYLOAD_DEPTH)
    return payload
