"""The pure decision of who may run: rates over any window, and what a choice says of those it leaves."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from lateshift.model.guard import Bucket, Candidate, Facts, Rule, Session, choose, limits_of, news, rule_of
from lateshift.model.ids import JobId, new_job_id

SECOND = timedelta(seconds=1)


def jobs(
    count: int, *, task: str = "t", limit_key: str | None = None, session: str | None = None
) -> list[Candidate]:
    return [Candidate(new_job_id(), "q", task, session, None, limit_key) for _ in range(count)]


@given(
    rate=st.integers(1, 50),
    seconds=st.sampled_from([1, 10, 60]),
    burst=st.integers(1, 20),
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(0, 30), st.integers(1, 40)), max_size=30),
)
def test_over_any_window_no_more_start_than_the_burst_and_what_grows_in_it(
    rate: int, seconds: int, burst: int, steps: list[tuple[float, int, int]]
) -> None:
    rule = Rule("task", "t", None, rate, timedelta(seconds=seconds), burst)
    buckets: dict[str, Bucket] = {}
    now = 1000.0
    starts: list[float] = []
    waiting: list[tuple[float, Candidate]] = []
    in_line: list[Candidate] = []
    for pause, fresh, room in steps:
        now += pause
        due = [Candidate(job.id, "q", "t", promised=True) for at, job in waiting if at <= now]
        waiting = [(at, job) for at, job in waiting if at > now]
        candidates = due + in_line + jobs(fresh)
        choice = choose(candidates, room, Facts({("task", "t"): rule}, now, buckets=buckets))
        starts += [now] * len(choice.take)
        by_id = {job.id: job for job in candidates}
        for id, waits_for, at in choice.later:
            assert waits_for == "rate:task:t"
            assert at > now
            waiting.append((at, by_id[id]))
        in_line = [by_id[id] for ids in choice.block.values() for id in ids]
    for first, begin in enumerate(starts):
        for last in range(first, len(starts)):
            grown = (starts[last] - begin) * rate / seconds
            assert last - first + 1 <= burst + grown + 1e-6 * (last - first + 1)


def test_who_waits_for_a_token_is_told_the_moment_at_which_it_grows() -> None:
    rule = Rule("task", "t", None, 2, SECOND, 1)
    candidates = jobs(4)
    choice = choose(candidates, 4, Facts({("task", "t"): rule}, 100.0))
    assert choice.take == [candidates[0].id]
    assert [at for _, _, at in choice.later] == [100.5, 101.0, 101.5]


def test_a_clock_that_was_set_back_starts_nobody_early_and_keeps_nobody_waiting() -> None:
    rules = {("task", "t"): Rule("task", "t", None, 1, SECOND, 1)}
    buckets: dict[str, Bucket] = {}

    def started(now: float) -> int:
        return len(choose(jobs(1), 1, Facts(rules, now, buckets=buckets)).take)

    assert started(5000.0) == 1
    assert started(100.0) == 0
    assert started(101.5) == 1


def test_a_job_counts_against_its_queue_its_task_and_the_kind_of_its_key() -> None:
    rules = {(r.scope, r.name): r for r in (Rule("queue", "q", 1), Rule("task", "t", 2), Rule("key", "k", 3))}
    assert [key for key, _ in limits_of(rules, "q", "t", "k:7")] == ["key:k:7", "task:t", "queue:q"]
    assert [key for key, _ in limits_of(rules, "other", "t", "else:7")] == ["task:t"]
    assert rule_of(rules, "key:k:7").concurrency == 3
    assert rule_of(rules, "task:gone").concurrency is None


def test_room_that_is_full_leaves_the_rest_as_they_are() -> None:
    choice = choose(jobs(5), 2, Facts({}, 0.0))
    assert (len(choice.take), choice.block, choice.later) == (2, {}, [])


def test_a_session_whose_head_is_no_candidate_has_its_head_looked_for() -> None:
    [job] = jobs(1, session="s")
    head: JobId = new_job_id()
    choice = choose([job], 5, Facts({}, 0.0, sessions={"s": Session(head=head)}))
    assert (choice.take, choice.heads, choice.block) == ([], {"s"}, {"session:s": [job.id]})


def test_a_limit_whose_owner_is_gone_meanwhile_is_news() -> None:
    limit = Rule("queue", "default", 5)
    known = {("queue", "default"): limit}
    assert news(known, {}, [limit], "shop") == [limit]
    assert news(known, {("queue", "default"): "shop"}, [limit], "shop") == []
    assert news({}, {}, [Rule("queue", "default")], "shop") == []
