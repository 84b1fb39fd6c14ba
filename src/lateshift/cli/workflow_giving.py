"""What an operator gives a run: data as JSON, and other arguments for a step that is held."""

from typing import Any

import msgspec

from lateshift.errors import OptionInvalid
from lateshift.model.depth import too_deep
from lateshift.model.workflow.step import StepView, shown_path
from lateshift.operating.steps import is_checked


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


def read_arguments(text: str | None) -> Any:
    """None if they were left out. Raises OptionInvalid."""
    if text is None:
        return None
    if (given := read_json("--args", text)) is None:
        raise OptionInvalid("--args null gives no arguments: leave --args out for those that the step had.")
    return given


def refuse_unchecked(step: StepView) -> None:
    """Of whoever names a program to check by. Raises OptionInvalid if it has no types for this step."""
    if not is_checked(step):
        raise OptionInvalid(
            f"Step {shown_path(step.path)} {step.name} is no task, so that --app has no types to check its arguments by: leave --app out."
        )
