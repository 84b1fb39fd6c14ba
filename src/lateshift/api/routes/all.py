"""Every route, those asked for most first."""

from lateshift.api.route import Route
from lateshift.api.routes import (
    batches,
    bulk,
    dead_letters,
    discarding,
    events,
    graphs,
    guards,
    health,
    hooks,
    jobs,
    overview,
    queues,
    schedule_making,
    schedules,
    tasks,
    tokens,
    triggers,
    workflows,
)

ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *tasks.ROUTES,
    *bulk.ROUTES,
    *queues.ROUTES,
    *overview.ROUTES,
    *workflows.ROUTES,
    *events.ROUTES,
    *graphs.ROUTES,
    *schedule_making.ROUTES,
    *schedules.ROUTES,
    *guards.ROUTES,
    *batches.ROUTES,
    *triggers.ROUTES,
    *dead_letters.ROUTES,
    *discarding.ROUTES,
    *tokens.ROUTES,
    *hooks.ROUTES,
    *health.ROUTES,
)
ROUTE_OF = {route.handler: route for route in ROUTES}
