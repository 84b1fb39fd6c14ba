"""`/metrics` for Prometheus. Scrapes that come soon after one another share one look at the store, however many scrapers there are."""

from collections.abc import Sequence

from lateshift.api.asked import Asked
from lateshift.api.bounds import METRICS_EVERY
from lateshift.api.route import Answer, Reach, Route
from lateshift.app.app import Lateshift
from lateshift.model.access import Scope
from lateshift.runtime.together import Together
from lateshift.telemetry.exposition import CONTENT_TYPE, OPENMETRICS_TYPE
from lateshift.telemetry.liveness import ages
from lateshift.telemetry.looking import Look, look
from lateshift.telemetry.measures import PROCESS
from lateshift.telemetry.metrics import text_of

OPENMETRICS = "application/openmetrics-text"
VERSIONS = (None, "1.0.0")


class Looks:
    """The newest look, and when it was taken. Those who wait for one wait for the same."""

    def __init__(self) -> None:
        self._seen: tuple[float, Look] | None = None
        self._together = Together(self._look)

    async def newest(self, app: Lateshift) -> Look:
        return await self._together.put(app)

    def _look(self, apps: Sequence[Lateshift]) -> list[Look]:
        now = apps[0].clock.monotonic()
        if self._seen is None or now - self._seen[0] >= METRICS_EVERY.total_seconds():
            self._seen = (now, look(apps[0].store))
        return [self._seen[1]] * len(apps)


def metrics_route() -> Route:
    """With looks of its own: each application has one."""
    looks = Looks()

    async def metrics(asked: Asked) -> Answer:
        """Metrics of the store and of this process, for Prometheus.

        In its text format, or in OpenMetrics where `Accept` likes that as much."""
        openmetrics = likes_openmetrics(asked.accepts)
        text = text_of(await looks.newest(asked.app), PROCESS.total(), ages(), openmetrics=openmetrics)
        return Answer(
            text, headers={"Vary": "Accept"}, text=OPENMETRICS_TYPE if openmetrics else CONTENT_TYPE
        )

    return Route(
        method="GET", path="/metrics", handler=metrics, gives=str, scope=Scope.READ, reach=Reach.ALL,
        media=(CONTENT_TYPE, OPENMETRICS_TYPE),
    )  # fmt: skip


def likes_openmetrics(accepts: str) -> bool:
    """Whether a header names OpenMetrics, and no other text before it. Whoever names nothing gets the older format."""
    open_, plain = 0.0, 0.0
    for each in accepts.split(","):
        kind, *rest = (part.strip().lower() for part in each.split(";"))
        said = dict(part.partition("=")[::2] for part in rest)
        quality = _quality(said.get("q", "1"))
        if kind == OPENMETRICS and said.get("version") in VERSIONS:
            open_ = max(open_, quality)
        elif kind == "text/plain":
            plain = max(plain, quality)
    return open_ > 0 and open_ >= plain


def _quality(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
