"""Documents that tell the truth: every setting, option, command, error, limit and link is where it is said to be."""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import click
import pytest

import lateshift
from lateshift import errors, testing
from lateshift.cli import exits
from lateshift.cli.audit import audit_document
from lateshift.cli.main import lateshift as command_line
from lateshift.cli.missing import REASONS
from lateshift.config import Settings
from lateshift.documents.batches import batch_document
from lateshift.documents.breakers import breaker_document
from lateshift.documents.jobs import job_brief, job_whole
from lateshift.documents.logs import log_document
from lateshift.documents.members import member_document
from lateshift.documents.pipelines import pipeline_document
from lateshift.documents.queues import queue_document
from lateshift.documents.sessions import limit_document, session_document
from lateshift.documents.tokens import token_document
from lateshift.documents.triggers import refused_document, trigger_document
from lateshift.documents.workflows import STATES, run_document, step_document, whole_document
from lateshift.model.access import Scope
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.guard import Rule
from lateshift.model.scheduling.plan import Outcome
from lateshift.model.workflow.graph import Edge, Node, NodeKind
from lateshift.registrar import TaskOptions
from lateshift.workflow.graph.style import STATES as STATES_OF_NODES
from tests.unit import test_explaining_anything

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, f"{path} {name}")
    else:
        yield path, command


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(heading)}\b.*?(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no heading '## {heading}'"
    return found.group()


@pytest.mark.parametrize("setting", [each.name for each in fields(Settings) if each.name != "sources"])
def test_every_setting_is_documented(setting: str) -> None:
    text = (DOCS / "settings.md").read_text()
    assert f"| `{setting}` | `LATESHIFT_{setting.upper()}` |" in text


@pytest.mark.parametrize(("path", "command"), list(commands(command_line, "lateshift")), ids=str)
def test_every_command_and_option_is_documented(path: str, command: click.Command) -> None:
    text = (DOCS / "cli.md").read_text()
    here = section(text, path)
    shared = text[: text.index("## Exit codes")]
    for parameter in command.params:
        for option in parameter.opts if isinstance(parameter, click.Option) else []:
            assert option in here or option in shared, f"{path} {option}"


FILTER = lateshift.FilterProgress(name="", queue="", waiting=0, running=0, held=0, failed=0)
STEP = Mock(path="00001", payload=None, result=None, error=None, undo_error=None)
RUN = ["lateshift workflows list", "lateshift workflows show"]
TOKEN = Mock(scopes=(), queues=(), revoked_at=None, expires_at=None)
ANYTHING = Mock(
    progress=None, payload=None, result=None, checkpoint=None, history=[], serves=None, tags=(), sensitive=False, task="", loops={}
)  # fmt: skip


@pytest.mark.parametrize(
    ("headings", "document"),
    [
        (["lateshift jobs list"], job_brief(ANYTHING)),
        (["lateshift jobs list", "lateshift jobs show"], job_whole(ANYTHING)),
        (
            ["lateshift jobs logs"],
            log_document(AttemptLog(job=UUID(int=0), attempt=1, fence=1, lines=[], logged=0)),
        ),
        (["lateshift batches list"], batch_document(ANYTHING)),
        (["lateshift queues list"], queue_document(ANYTHING)),
        (["lateshift members list"], member_document(Mock(stats={}, loops={}))),
        (["lateshift sessions list"], session_document(Mock(state=None), ())),
        (["lateshift limits"], limit_document(Rule("key", "vendor"))),
        (["lateshift triggers list"], trigger_document(ANYTHING)),
        (["lateshift triggers refused"], refused_document(Mock(raw=b"", rest=b'{"seen":{}}'), ())),
        (["lateshift workflows list"], run_document(ANYTHING, datetime.now(UTC))),
        (["lateshift breakers list"], breaker_document(ANYTHING)),
        (["lateshift tokens list"], token_document(TOKEN, datetime.now(UTC))),
        (["lateshift audit list"], audit_document(ANYTHING)),
        (RUN, whole_document(Mock(steps=[]), ANYTHING, [], datetime.now(UTC))),
        (["lateshift workflows show"], step_document(STEP)),
        (["lateshift pipelines list"], pipeline_document((), Mock(filters=[FILTER]))),
        (["lateshift pipelines list"], dict.fromkeys(FILTER.__struct_fields__)),
        (["lateshift workflows graph"], dict.fromkeys(lateshift.Graph.__struct_fields__)),
        (["lateshift workflows graph"], dict.fromkeys(Node.__struct_fields__ + Edge.__struct_fields__)),
        (["lateshift workflows graph"], dict.fromkeys([*NodeKind, *STATES_OF_NODES])),
    ],
    ids=[
        "job",
        "whole job",
        "log",
        "batch",
        "queue",
        "member",
        "session",
        "limit",
        "trigger",
        "refused",
        "run",
        "breaker",
        "token",
        "line of the audit",
        "whole run",
        "step",
        "pipeline",
        "filter",
        "graph",
        "node and edge",
        "kinds and states of nodes",
    ],
)
def test_every_field_of_a_json_document_is_documented(headings: list[str], document: Any) -> None:
    text = (DOCS / "cli.md").read_text()
    here = "".join(section(text, heading) for heading in headings)
    names = document if isinstance(document, dict) else document.__struct_fields__
    assert [name for name in names if f"`{name}`" not in here] == []


def test_every_scope_is_documented() -> None:
    for page in ("access.md", "cli.md"):
        text = (DOCS / page).read_text()
        assert [scope for scope in Scope if f"`{scope}`" not in text] == []


def test_every_reason_for_which_a_job_ends_is_documented() -> None:
    text = "".join((DOCS / page).read_text() for page in ("tasks.md", "queues.md", "cli.md"))
    assert [reason for reason in REASONS if f"`{reason}`" not in text] == []


def test_every_state_of_a_run_is_documented() -> None:
    here = section((DOCS / "cli.md").read_text(), "lateshift workflows list")
    assert [state for state in STATES if f"`{state}`" not in here] == []


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    listed = re.findall(r"^\| (\d+) \|", (DOCS / "cli.md").read_text(), flags=re.MULTILINE)
    assert {int(code) for code in listed} == codes


def test_every_error_is_documented_and_stands_in_the_tree() -> None:
    kinds = [
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    text = (DOCS / "errors.md").read_text()
    assert [name for name in kinds if f"`{name}`" not in text and f"`{name}(" not in text] == []
    assert [name for name in kinds if name not in (errors.__doc__ or "")] == []


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("PAYLOAD_LIMIT", "model.job"),
        ("RESULT_LIMIT", "model.job"),
        ("LOSSES_UNTIL_DEAD", "model.job"),
        ("PRIORITIES", "model.job"),
        ("TRACEBACK_LIMIT", "model.outcome"),
        ("MESSAGE_LIMIT", "model.outcome"),
        ("KEPT", "model.history"),
        ("KEY_LIMIT", "task"),
        ("TAGS_LIMIT", "model.tags"),
        ("TAG_LIMIT", "model.tags"),
        ("LOOKED_AT", "model.search"),
        ("BULK_MOST", "operating.bulk"),
        ("GENERATIONS", "store.marks"),
        ("KIN_SHOWN", "dashboard.pages.job"),
        ("AUDIT_SHOWN", "dashboard.pages.job"),
        ("DEAD_ON_A_PAGE", "dashboard.pages.dead_letters"),
        ("LETTERS_SHOWN", "dashboard.pages.dead_letters"),
        ("FAILURES_SHOWN", "dashboard.pages.batches"),
        ("BRIEF", "dashboard.rendering"),
        ("LOCK_NAME_LIMIT", "app.app"),
        ("LARGEST_MAX_READY", "model.queue"),
        ("SHARE", "model.estimate"),
        ("NAME_LIMIT", "model.placing"),
        ("CHUNK", "client"),
        ("JOBS_LIMIT", "model.batch"),
        ("BATCH_NAME_LIMIT", "model.batch"),
        ("LEAST_INTERVAL", "model.scheduling.timing"),
        ("CRON_LIMIT", "model.scheduling.cron"),
        ("SCHEDULE_NAME_LIMIT", "model.scheduling.schedule"),
        ("CATCH_UP_MOST", "model.scheduling.plan"),
        ("REMEMBERED", "model.scheduling.schedule"),
        ("TICKS_KEPT", "store.taking"),
        ("SKIPS_COUNTED", "model.scheduling.plan"),
        ("AT_ONCE", "scheduler.ticker"),
        ("TRIGGER_NAME_LIMIT", "model.triggering.trigger"),
        ("EVENT_LIMIT", "model.triggering.trigger"),
        ("ERROR_LIMIT", "model.triggering.trigger"),
        ("REFUSED_LIMIT", "model.triggering.trigger"),
        ("REFUSED_COUNTED", "model.triggering.trigger"),
        ("EVENT_NAME_LIMIT", "model.triggering.naming"),
        ("PREFETCH_MOST", "app.triggering"),
        ("UNPACKED_LIMIT", "triggers.brokers.envelopes"),
        ("BYTES_AT_ONCE", "triggers.messages"),
        ("MESSAGE_WINDOW", "model.triggering.sources"),
        ("ANSWER_KEPT", "store.answer_contract"),
        ("ANSWER_LIMIT", "store.answer_contract"),
        ("ANSWER_WITHIN", "store.answer_contract"),
        ("WINDOW_LEAST", "app.triggering"),
        ("TOLERANCE", "webhooks"),
        ("SIGNATURES_MOST", "webhooks"),
        ("DELIVERY_ID_LIMIT", "webhooks"),
        ("UNINSTALL_AFTER", "store.postgres.row_triggers"),
        ("REFUSED_KEPT", "store.taking"),
        ("TRIGGER_KEPT", "store.taking"),
        ("TOGETHER", "runtime.together"),
        ("STEPS_MOST", "model.workflow.step"),
        ("SIGNALS_MOST", "model.workflow.run"),
        ("PARTS_MOST", "model.pipeline.building"),
        ("FAN_OUT_MOST", "workflow.passing"),
        ("PIPELINE_NAME_LIMIT", "app.pipelines"),
        ("STEPS_LOOKED_AT", "store.workflow_contract"),
        ("PIPELINES_SHOWN", "operating.pipelines"),
        ("STEP_NAME_LIMIT", "workflow.flow"),
        ("SIGNAL_NAME_LIMIT", "model.workflow.run"),
        ("STATUS_LIMIT", "model.workflow.run"),
        ("CIRCUIT_KEPT", "store.taking"),
        ("MOST_FAILURES", "model.breaker"),
        ("REASON_LIMIT", "model.breaker"),
        ("PARKED_AT_ONCE", "store.breaker_contract"),
        ("NODES_MOST", "model.workflow.graph"),
        ("LABEL_MOST", "model.workflow.graph"),
        ("HELPERS_DEEP", "workflow.graph.steps"),
        ("HELPERS_MOST", "workflow.graph.steps"),
        ("RESUMED_AT_ONCE", "operating.resuming"),
        ("BATCH", "worker.room"),
        ("COUNT_LIMIT", "store.contract"),
        ("ENDINGS_LOOKED_AT", "store.contract"),
        ("DEAD_LOOKED_AT", "dead_letters.dead_letters"),
        ("KEPT_TOLD", "dead_letters.dead_letters"),
        ("DISCARD_MOST", "dead_letters.discarding"),
        ("GROUPS_KEPT", "model.groups"),
        ("FINDINGS_KEPT", "app.check"),
        ("WAS_LIMIT", "model.edit"),
        ("AHEAD_LOOKED_AT", "model.explaining.facts"),
        ("OTHERS_LOOKED_AT", "model.explaining.facts"),
        ("MEMBERS_LOOKED_AT", "model.explaining.facts"),
        ("PROGRAMS_LOOKED_AT", "model.explaining.facts"),
        ("TASKS_TOLD", "model.member"),
        ("QUEUES_DECLARED", "model.member"),
        ("VERSION_LIMIT", "model.member"),
        ("LINES_TOLD", "worker.starts"),
        ("LOG_LINES", "model.attempt_log"),
        ("LOG_BYTES", "model.attempt_log"),
        ("LOG_LINE_LIMIT", "model.attempt_log"),
        ("LOGGER_LIMIT", "model.attempt_log"),
        ("LEASES_LOGGED", "model.attempt_log"),
        ("LOGS_AT_ONCE", "worker.settler"),
        ("LIVE_LOG_EVERY", "worker.control"),
        ("LIVE_LOGS_AT_ONCE", "worker.control"),
        ("TASKS_COUNTED", "telemetry.measures"),
        ("QUEUES_SPREAD", "telemetry.measures"),
        ("TOLD_EVERY", "worker.counting"),
        ("QUEUES_TOLD", "worker.counting"),
        ("LETTERS_LOOKED_AT", "operating.attention"),
        ("COUNTED_NOW", "operating.attention"),
        ("BACKLOG_COUNTED", "model.figures"),
        ("OF_EACH", "operating.attention"),
        ("SCHEDULE_LATE", "model.scheduling.schedule"),
        ("MISSED_WITHIN", "operating.attention"),
        ("REPLIES_LATE", "operating.attention"),
        ("RECENT", "operating.pace"),
        ("QUEUES_SUMMED", "operating.overview"),
        ("QUEUES_COSTED", "operating.overview"),
        ("PERIODS", "dashboard.chart"),
        ("QUEUES_SHOWN", "dashboard.pages.queues"),
        ("TENANTS_SHOWN", "dashboard.pages.queues"),
        ("TENANT_COUNTED", "store.guard_contract"),
        ("SESSIONS_LOOKED_AT", "dashboard.pages.queues"),
        ("WORKERS_SHOWN", "dashboard.pages.queues"),
        ("MEMBERS_SHOWN", "dashboard.pages.members"),
        ("BREAKERS_SHOWN", "dashboard.pages.breakers"),
        ("SERIES_MOST", "telemetry.exposition"),
        ("LABEL_LIMIT", "telemetry.exposition"),
        ("SCHEDULES_LOOKED_AT", "telemetry.looking"),
        ("RUNS_LOOKED_AT", "telemetry.looking"),
        ("SEEN_MOST", "telemetry.looking"),
        ("BATCHES_LOOKED_AT", "telemetry.looking"),
        ("MEMBERS_TIMED", "telemetry.of_members"),
        ("LOOPS_TOLD", "runtime.wire"),
        ("TOKEN_NAME_LIMIT", "model.access"),
        ("TOKEN_QUEUES_MOST", "model.access"),
        ("TOKEN_PATTERN_LIMIT", "model.access"),
        ("TOKEN_KEPT", "store.taking"),
        ("USED_EVERY", "store.access_contract"),
        ("TOKENS_AT_ONCE", "store.access_contract"),
        ("RENEWED_AT_ONCE", "store.seal_contract"),
        ("AUDIT_KEPT", "store.taking"),
        ("STARTS_KEPT", "store.taking"),
        ("AUDIT_AT_ONCE", "store.access_contract"),
        ("AUDIT_LOOKED_AT", "store.access_contract"),
        ("AUDIT_TEXT_LIMIT", "store.access_contract"),
        ("CORRELATION_LIMIT", "model.reply"),
        ("ROUTES_MOST", "model.reply"),
        ("REPLY_LIMIT", "model.reply"),
        ("TASK_NAME_LIMIT", "model.job"),
        ("RESULT_TOLD", "model.events"),
        ("ERROR_TOLD", "model.events"),
        ("EVENTS_KEPT", "store.replying"),
        ("COURIER_BATCH", "replies.courier"),
        ("AT_HAND", "replies.hub"),
        ("AT_HAND_BYTES", "replies.hub"),
        ("PAGE", "replies.hub"),
        ("HELD", "replies.hub"),
        ("HELD_BYTES", "replies.hub"),
        ("KEPT_CONNECTIONS", "store.postgres.database"),
        ("READERS", "store.sqlite.database"),
        ("STATEMENT_SECONDS", "store.postgres.database"),
        ("BUSY_SECONDS", "store.sqlite.database"),
    ],
)
def test_every_limit_is_documented_with_its_value(name: str, module: str) -> None:
    value = getattr(importlib.import_module(f"lateshift.{module}"), name)
    [said] = re.findall(rf"\| `{name}` \| (.*) \|", (DOCS / "operating.md").read_text())
    match value:
        case range():
            expected = f"{value[0]} to {value[-1]}"
        case timedelta():
            expected = (
                f"{value.days} day" if value.days else f"{value.total_seconds():g} s"
            )  # one day, or days
        case int() if value % 1024 == 0:
            expected = f"{value // 1024} KiB"
        case _:
            expected = f"{value:,}"
    assert said.startswith(expected)


def test_every_public_name_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in lateshift.__all__ if name not in text] == []


def test_every_public_name_for_tests_is_documented() -> None:
    text = (DOCS / "testing.md").read_text()
    assert [name for name in testing.__all__ if name not in text] == []


def test_every_task_option_is_documented() -> None:
    text = (DOCS / "tasks.md").read_text() + (DOCS / "queues.md").read_text()
    assert [name for name in TaskOptions.__annotations__ if f"`{name}`" not in text] == []
    for function in (
        lateshift.Task.options,
        lateshift.Lateshift.queue,
        lateshift.Unique,
    ):
        names = [
            each.name
            for each in inspect.signature(function).parameters.values()
            if each.kind is each.KEYWORD_ONLY
        ]
        assert names
        assert [name for name in names if f"`{name}`" not in text] == []


def test_every_option_of_a_schedule_is_documented() -> None:
    text = (DOCS / "schedules.md").read_text()
    said = inspect.signature(lateshift.Lateshift.schedule).parameters.values()
    names = [each.name for each in said if each.kind is each.KEYWORD_ONLY]
    assert names
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_option_of_a_pipeline_is_documented() -> None:
    text = (DOCS / "pipelines.md").read_text()
    said = inspect.signature(lateshift.Lateshift.pipeline).parameters.values()
    names = [each.name for each in said if each.kind is each.KEYWORD_ONLY]
    names += [*lateshift.PipelineProgress.__struct_fields__, *lateshift.FilterProgress.__struct_fields__]
    undocumented = {"filters", "queue"}  # as words
    assert [name for name in names if f"`{name}`" not in text and name not in undocumented] == []


def test_every_outcome_of_a_tick_is_documented() -> None:
    for page in ("schedules.md", "cli.md"):
        text = (DOCS / page).read_text()
        assert [each.label for each in Outcome if f"`{each.label}`" not in text] == []


def test_every_reason_of_an_explanation_is_documented() -> None:
    text = (DOCS / "explain.md").read_text()
    codes = (
        test_explaining_anything.WAITING | test_explaining_anything.RUNNING | test_explaining_anything.ENDED
    )
    assert [code for code in sorted(codes) if f"`{code}`" not in text] == []
    for struct in (lateshift.Reason, lateshift.Explanation):
        assert [name for name in struct.__struct_fields__ if f"`{name}`" not in text and name != "zone"] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [each for each in targets if "://" not in each and not (page.parent / each).exists()] == []
