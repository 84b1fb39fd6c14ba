"""What a worker says of a failure."""

from datetime import timedelta

import pytest

from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Lease
from lateshift.model.outcome import Failed, Later
from lateshift.model.sealed import MASK
from lateshift.worker.telling import tell

LEASE = Lease(new_job_id(), 1, "charge", b"{}", 1, 5, None, "payments", Lane.THREAD)
AGAIN = Later(timedelta(seconds=1929.7), counts=True)


def test_a_line_tells_when_it_is_tried_again_as_all_else_tells_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tell(LEASE, Failed(ValueError("no coin")), AGAIN)
    assert caplog.messages == [
        f"charge {LEASE.id} failed at attempt 1, again in 32m 10s: ValueError: no coin"
    ]


def test_of_a_sealed_job_it_is_told_what_was_raised_and_not_what_that_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tell(LEASE, Failed(ValueError("no coin")), AGAIN, sealed=True)
    assert caplog.messages[0].endswith(f"again in 32m 10s: ValueError: {MASK}")
