"""No statement is forgotten: each one on the tables of jobs, of both stores, has its plan looked at (plans_on_sqlite, plans_on_postgres)."""

import re
from types import ModuleType

from lateshift.store import postgres, sqlite
from tests.store_contract.plans_on_postgres import POSTGRES
from tests.store_contract.plans_on_sqlite import SQLITE

UNPLANNED = {
    "ANY_LOG",  # the first row, whichever
    "ANY_MARK",
    "INSERT_TAG",
    "INSERT_TAGS",
    "INSERT_PARENT",
    "INSERT_PARENTS",
    "INSERT_CHILD",
    "INSERT_CHILD_TRACED",
    "INSERT_STARTED",
    "INSERT_STARTED_TRACED",
    "INSERT_STARTED_FIRSTS",
    "TAKE",  # a part of others, as are the next two
    "HOT",
    "COLD",
    "SLIM_HOT",
    "SLIM_COLD",
    "BODY",  # of a function, which inserts alone
    "RULES",  # what `store check` looks through, whole tables
    "TAKE_KEY",
    "INSERT_NOW",
    "INSERT_NOW_TRACED",
    "INSERT_BLOCKS",
    "INSERT_FIRST",
    "INSERT_FIRSTS",
    "TAKE_IDENTITIES",
    "INSERT_BATCH",
    "INSERT_BATCH_BLOCK",
    "INSERT_DUE",
    "INSERT_DUE_BLOCK",
    "INSERT_PAST_BLOCK",
}  # an upsert by primary key has no plan to look at


BATCHES_THEMSELVES = {"IN_NEED", "WITH_LINES", "ADD_UP", "EXPIRED"}  # which touch no table of jobs
SCHEDULES_THEMSELVES = {"DUE", "MOVE", "LATE_SCHEDULES", "MISSED"}  # nor do these
SESSIONS_THEMSELVES = {"LIST", "LIST_HELD", "BARE", "BARE_HELD"}  # nor these
REFUSED_THEMSELVES = {"WHICH_REFUSED"}  # nor this
ANSWERS_THEMSELVES = {"STILL_HELD"}  # nor this
WORKFLOWS_THEMSELVES = {
    "END_STEP", "END_UNDO", "UNDO_AGAIN", "NEWS", "PUT_UNDO", "STEPS", "STEPS_AFTER", "STEPS_WITHIN", "STEP", "OUTLINE", "TO_UNDO", "RUNS_BELOW", "SIGNALS", "FIRST_SIGNALS", "SIGNALS_WITHIN", "KEY_USED", "LAST_SIGNAL", "TAKE_SIGNAL", "NEWEST_ALL",
    "NEWEST_OF", "NEWEST_IN", "NEWEST_FORWARD", "TRY_AGAIN", "BEGUN", "ENDED", "UNDONE",
    "OVERDUE_STEPS", "FAIL_LATE", "COUNT_HELD_STEPS", "NEXT_NAME",
}  # nor these  # fmt: skip


TOUCHES = re.compile(
    r"\b(FROM|INTO|UPDATE)\s+(lateshift\.)?(job|settled|job_key|job_identity|attempt_log|job_tag|job_parent)\b"
)


def is_statement(value: object) -> bool:
    return isinstance(value, str) and TOUCHES.search(value) is not None


def statements_of(package: ModuleType) -> set[str]:
    """The names of all statements that touch the tables of jobs."""
    found = set()
    for module in vars(package).values():
        if isinstance(module, ModuleType) and module.__name__.startswith(package.__name__):
            for name, value in vars(module).items():
                forms = value.values() if isinstance(value, dict) else [value]
                if name.isupper() and not name.startswith("_") and all(map(is_statement, forms)):
                    found.add(name)
    return found


def test_every_statement_on_the_tables_of_jobs_has_its_plan_looked_at() -> None:
    themselves = (
        BATCHES_THEMSELVES
        | SCHEDULES_THEMSELVES
        | WORKFLOWS_THEMSELVES
        | SESSIONS_THEMSELVES
        | ANSWERS_THEMSELVES
        | REFUSED_THEMSELVES
    )
    planned_on_sqlite = {name.split()[0] for name, _, _ in SQLITE}
    assert statements_of(sqlite) - UNPLANNED == planned_on_sqlite - themselves
    planned = {name.split()[0] for name, _, _, _ in POSTGRES}
    assert statements_of(postgres) - UNPLANNED == planned - themselves
