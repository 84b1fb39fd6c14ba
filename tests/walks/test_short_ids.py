"""Jobs named by a piece of their id: one is meant, or it is said which it could be."""

import pytest

from lateshift import Lateshift
from lateshift.model.ids import JobId, new_job_id
from tests.digits import first_digits
from tests.store_contract.driving import added, make_job
from tests.walks.burying import bury
from tests.walks.commands import Cli


@pytest.fixture
def job(app: Lateshift) -> JobId:
    return added(app.store, make_job(task="pack", payload=b'{"order":1}'))[0]


@pytest.mark.parametrize("cut", [slice(-6, None), slice(0, 23), slice(-12, None)])
def test_a_piece_of_an_id_names_its_job(cli: Cli, job: JobId, cut: slice) -> None:
    piece = str(job)[cut]
    assert cli("jobs", "show", piece, "--json").document["id"] == str(job)
    assert cli("jobs", "show", f"…{piece.upper()}", "--json").document["id"] == str(job)


def test_a_piece_is_good_for_cancel_and_resubmit(cli: Cli, job: JobId) -> None:
    piece = str(job)[-8:]
    assert cli("jobs", "cancel", piece, "--json").document["cancelled"] == [str(job)]
    assert cli("jobs", "resubmit", piece, "--json").document["resubmitted"] == [str(job)]
    assert cli("jobs", "show", piece, "--json").document["state"] == "ready"


def test_a_piece_that_fits_several_says_which_and_does_nothing(cli: Cli, app: Lateshift) -> None:
    ids = added(app.store, *[make_job(task="pack") for _ in range(3)])
    piece = first_digits(ids)
    for verb in ("show", "cancel", "resubmit"):
        said = cli("jobs", verb, piece)
        assert said.code == 2
        assert all(str(id) in said.err for id in ids)
        assert "(pack, ready)" in said.err
        assert "Give more digits" in said.err
    assert cli("jobs", "list", "--state", "cancelled", "--json").document["jobs"] == []


def test_many_that_a_piece_fits_are_not_all_listed(cli: Cli, app: Lateshift) -> None:
    ids = added(app.store, *[make_job(task="pack") for _ in range(12)])
    said = cli("jobs", "show", first_digits(ids))
    assert said.err.count("(pack, ready)") == 5
    assert "and others" in said.err


def test_an_id_with_a_wrong_digit_is_unknown_but_the_right_one_is_suggested(cli: Cli, job: JobId) -> None:
    text = str(job)
    for place in (2, 12, 20, 30, 35):
        wrong = text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]
        said = cli("jobs", "show", wrong)
        assert said.code == 4
        assert f"There is no job {wrong}" in said.err
        assert f"Did you mean {job} (pack, ready)?" in said.err, place


def test_a_short_piece_with_a_wrong_digit_suggests_recent_jobs(cli: Cli, job: JobId) -> None:
    piece = str(job)[-6:]
    wrong = piece[:-1] + ("0" if piece[-1] != "0" else "1")
    said = cli("jobs", "cancel", wrong)
    assert said.code == 4
    assert f"job {wrong} is not in the store" in said.err
    assert f"Did you mean {job} (pack, ready)?" in said.err


def test_an_id_like_no_other_gets_no_suggestion(cli: Cli, job: JobId) -> None:
    said = cli("jobs", "show", str(new_job_id()))
    assert said.code == 4
    assert "Did you mean" not in said.err


def test_those_that_are_there_are_done_when_another_is_not(cli: Cli, job: JobId) -> None:
    missing = new_job_id().hex[-10:]
    said = cli("jobs", "cancel", str(job)[-8:], missing, "--json")
    assert said.code == 4
    assert said.document == {"cancelled": [str(job)], "unchanged": [{"id": missing, "state": None}]}


def test_the_same_job_named_twice_is_done_once(cli: Cli, app: Lateshift) -> None:
    [dead] = bury(app, b"{}")
    said = cli("jobs", "resubmit", str(dead), str(dead)[-8:], "--json")
    assert (said.code, said.document["resubmitted"]) == (0, [str(dead)])


@pytest.mark.parametrize("text", ["abc", "order-7", "0190f5e2-7c3a-7b12-9abc-def0123456789"])
def test_what_cannot_be_an_id_is_exit_code_2(cli: Cli, text: str) -> None:
    said = cli("jobs", "show", text)
    assert said.code == 2
    assert "is no job id" in said.err
