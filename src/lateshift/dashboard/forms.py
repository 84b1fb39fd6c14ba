"""What a browser sends of a form, read within bounds."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from lateshift.api.bounds import BOUNDS
from lateshift.api.budget import Share
from lateshift.api.problem import Refused
from lateshift.api.reading import bytes_of

FIELDS_MOST = 1_000  # of one form


async def form_of(request: Request, limit: int = BOUNDS.body, share: Share | None = None) -> dict[str, str]:
    """What was typed. `share`: of what is held of all bodies together. A field that stands more than once is the texts joined by commas. Raises Refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "unsupported-media-type", "Forms are sent as browsers send them.")
    raw = await bytes_of(request, limit, share)
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=FIELDS_MOST)
    except ValueError as error:
        raise Refused(422, "form-invalid", f"The form cannot be read: {error}.") from None
    form: dict[str, str] = {}
    for name, value in pairs:
        form[name] = f"{form[name]},{value}" if name in form else value
    return form
