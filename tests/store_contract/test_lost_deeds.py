"""PostgreSQL: of every deed of an operator the answer to its commit is lost, others undo it, and the store tries again by itself."""

from lateshift.store.postgres import PostgresStore
from tests.store_contract.deeds import Make, all_of, done_by_ana, each
from tests.store_contract.test_lost_answers import Injured, lose_next_answer, store
from tests.store_contract.test_schedules import hourly
from tests.store_contract.test_triggers import trigger

__all__ = ["lose_next_answer", "store"]  # fixtures


@each
def test_a_deed_whose_answer_is_lost_is_answered_as_if_it_had_come_told_once_and_not_done_again(
    store: PostgresStore, lose_next_answer: Injured, make: Make
) -> None:
    deed, left = make(store), []

    def meanwhile() -> None:
        deed.undo()
        left.append(all_of(store))

    lose_next_answer(meanwhile=meanwhile, skip=deed.looks)
    answer = deed.do()

    assert deed.gives in (None, answer)
    assert len(done_by_ana(store)) == deed.lines
    assert [all_of(store)] == left


def test_a_declaration_whose_answer_is_lost_says_what_it_has_changed(
    store: PostgresStore, lose_next_answer: Injured
) -> None:
    lose_next_answer()
    assert store.schedules.declare([hourly(store.clock.now())], app="shop").added == ["report"]
    lose_next_answer()
    assert store.triggers.declare([trigger()], app="shop").added == ["orders"]
