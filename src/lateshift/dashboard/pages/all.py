"""Every page, in the order of the navigation."""

from lateshift.dashboard.page import Page
from lateshift.dashboard.pages import (
    batches,
    breakers,
    dead_letters,
    job,
    jobs,
    members,
    overview,
    pipelines,
    queues,
    schedules,
    tokens,
    triggers,
    workflows,
)  # fmt: skip

PAGES: tuple[Page, ...] = (
    *overview.PAGES, *jobs.PAGES, *job.PAGES, *dead_letters.PAGES, *workflows.PAGES, *pipelines.PAGES, *batches.PAGES,
    *queues.PAGES, *schedules.PAGES, *triggers.PAGES, *breakers.PAGES, *members.PAGES, *tokens.PAGES,
)  # fmt: skip
