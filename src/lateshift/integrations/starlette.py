"""From a view of Starlette or FastAPI: `return accepted(await thumbnail.aenqueue(path))`."""

from typing import Any

import msgspec
from starlette.responses import Response

from lateshift.handle import Job


def accepted(job: Job[Any], *, api: str = "/v1", status: str | None = None) -> Response:
    """202 with the job's id and the URL of its status, in `Location` too. `api`: where Lateshift's API is, as clients see it. `status`: of a
    view of one's own instead, for clients without a token. `Retry-After` is when to look first, as the API's own answers say it: when the job
    is due, and a day from now at the latest."""
    status = status or f"{api.rstrip('/')}/jobs/{job.id}"
    body = {"id": str(job.id), "task": job.task, "created": job.created, "status": status}
    headers = {"Location": status, "Retry-After": str(job.look_after), "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(body), 202, headers, "application/json")
