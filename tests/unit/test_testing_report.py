"""The report of crash-at-every-step: what counts as a fault, and how it reads."""

from collections import Counter

from lateshift.testing.report import UNHARMED, Point, Report, Run

DONE = ("completed",)


def run(how: str, step: str, ended: tuple[str, ...] = DONE, reached: bool = True, **effects: int) -> Run:
    return Run(Point(how, step), Counter(effects), ended, reached)


def report(*runs: Run, at_most_once: bool = False) -> Report:
    unharmed = Run(UNHARMED, Counter(mailed=1, packed=2), DONE)
    return Report("ship(order=7)", unharmed, runs, at_most_once)


def test_a_run_like_the_unharmed_one_is_safe() -> None:
    said = report(run("killed after", "lease 1 of ship", mailed=1, packed=2))
    assert said.safe
    assert str(said).startswith("ship(order=7) is safe at all 1 points.")


def test_too_often_never_unheard_of_and_dead_are_faults() -> None:
    harmed = run("killed before", "checkpoint 1 of ship", ("dead (worker_lost)",), mailed=3, billed=1)
    assert report(harmed).faults(harmed) == [
        "mailed 3 times",
        "packed never, not twice",
        "billed once, not never",
        "ended dead (worker_lost)",
    ]


def test_where_at_most_once_is_meant_only_too_often_is_a_fault() -> None:
    never = run("killed after", "lease 1 of ship", ("dead (worker_lost)",))
    twice = run("killed before", "settlement 1 of ship (completed)", mailed=2, packed=2)
    said = report(never, twice, at_most_once=True)
    assert said.unsafe == [twice]


def test_the_table_has_a_line_for_each_point_and_marks_the_faults() -> None:
    said = report(
        run("killed after", "lease 1 of ship", mailed=1, packed=2),
        run("killed before", "checkpoint 1 of ship", mailed=2, packed=2),
        run("killed after", "checkpoint 1 of ship", reached=False, mailed=1, packed=2),
    )
    assert str(said).splitlines() == [
        "ship(order=7) is not safe at 1 of 3 points.",
        "",
        "   point                               side effects                     jobs",
        "-  ----------------------------------  -------------------------------  ---------",
        "   nothing is killed                   mailed once, packed twice        completed",
        "   killed after lease 1 of ship        the same                         completed",
        "!  killed before checkpoint 1 of ship  mailed twice                     completed",
        "   killed after checkpoint 1 of ship   the same (it did not get there)  completed",
    ]
