"""Metrics as text, in Prometheus' format 0.0.4 and in OpenMetrics 1.0. Written here, for it is a page: see docs/decisions/metrics.md."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from lateshift.model.escaping import escaped
from lateshift.model.outcome import clip

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SERIES_MOST = 2000  # samples of one metric; what is beyond is left out, and counted
LABEL_LIMIT = 200  # characters of a label's value
NAME = re.compile(r"[a-z_][a-z0-9_]*")

Kind = Literal["gauge", "counter", "histogram"]


class Sample(Struct, frozen=True):
    """A number, with the labels that tell it from its siblings. `suffix`: of a histogram's parts."""

    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


class Family(Struct, frozen=True):
    """A metric: its name, a counter's ending in _total; what it means; and its samples, in the order in which they are dear."""

    name: str
    kind: Kind
    help: str
    samples: list[Sample]

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"{self.name!r} is no name for a {self.kind}")


DROPPED = "lateshift_series_dropped"


def render(families: Iterable[Family], *, openmetrics: bool = False) -> str:
    """The text. A metric without samples is left out; so are samples that say the same of the same twice."""
    lines: list[str] = []
    dropped: list[Sample] = []
    for family in families:
        written = _family(family, openmetrics)
        kept = written[: 2 + SERIES_MOST]
        if len(written) > len(kept):
            while family.kind == "histogram" and not kept[-1].startswith(f"{family.name}_count"):
                kept.pop()  # all parts of one, or none
            dropped.append(Sample(len(written) - len(kept), {"metric": family.name}))
        lines += kept
    lines += _family(
        Family(
            DROPPED, "gauge", "Samples left out of this answer, beyond the limit of each metric.", dropped
        ),
        openmetrics,
    )
    if openmetrics:
        lines.append("# EOF")
    return "".join(f"{line}\n" for line in lines)


def _family(family: Family, openmetrics: bool) -> list[str]:
    name = family.name.removesuffix("_total") if openmetrics else family.name
    samples: dict[str, str] = {}
    for sample in family.samples:
        samples.setdefault(f"{family.name}{sample.suffix}{_labels(sample.labels)}", number(sample.value))
    if not samples:
        return []
    said = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    said = said.replace('"', '\\"') if openmetrics else said
    head = [f"# HELP {name} {said}", f"# TYPE {name} {family.kind}"]
    return head + [f"{series} {value}" for series, value in samples.items()]


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in labels.items()) + "}"


def quoted(text: str) -> str:
    """The value of a label. What a terminal would obey is shown, not sent."""
    lines = clip(text, LABEL_LIMIT).split("\n")
    return "\\n".join(escaped(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)


def number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
