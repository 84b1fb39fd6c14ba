"""Exit codes, for scripts to rely on. docs/cli.md says the same."""

from lateshift.errors import (
    BatchUnknown,
    BreakerUnknown,
    JobUnknown,
    LateshiftError,
    PipelineUnknown,
    RunEnded,
    RunUnknown,
    ScheduleUnknown,
    StoreError,
    StoreUrlInvalid,
    TokenUnknown,
    TriggerUnknown,
)

OK = 0
FOUND = 1  # `check` or `store check` found something wrong, or a job that went first, or of a batch, did not complete
USAGE = 2  # a wrong argument, option, setting, program or URL; nothing was done
STORE = 3  # the store did not answer, or refused
NOT_FOUND = (
    4  # no such job, run, batch, schedule or token, or none in a state for which the command makes sense
)
INTERNAL = 70  # a fault in Lateshift itself
INTERRUPTED = 130  # Ctrl-C, where nothing had to be stopped gracefully
OUTPUT_CLOSED = 141  # whoever read the output went away, as in `lateshift jobs list | head -1`


def exit_code_of(error: LateshiftError) -> int:
    match error:
        case JobUnknown() | BatchUnknown() | ScheduleUnknown() | TriggerUnknown() | BreakerUnknown():
            return NOT_FOUND
        case RunUnknown() | RunEnded() | PipelineUnknown() | TokenUnknown():
            return NOT_FOUND
        case StoreUrlInvalid():
            return USAGE
        case StoreError():
            return STORE
        case _:
            return USAGE
