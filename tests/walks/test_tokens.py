"""`lateshift tokens` and `lateshift audit`, as an operator uses them, on both stores."""

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lateshift.cli import exits
from lateshift.cli.options import operator
from lateshift.model.access import TOKEN_NAME_LIMIT, Scope, new_token, parse, refusal, verify
from lateshift.store.access_contract import AUDIT_AT_ONCE, AUDIT_LOOKED_AT
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.walks.commands import Cli, Said

ME = operator()


@pytest.fixture
def store(cli: Cli, store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    yield store
    store.close()


def make(cli: Cli, name: str = "ci", *more: str) -> str:
    """The token, as a script takes it from stdout."""
    said = cli("tokens", "create", name, "--scope", "read", *more)
    assert said.code == exits.OK
    return said.out.removesuffix("\n")


def test_a_token_is_printed_once_alone_on_stdout_and_it_is_said_so(cli: Cli, store: Store) -> None:
    said = cli(
        "tokens", "create", "ci", "--scope", "read", "--scope", "enqueue", "--queue", "images.*", "--expires", "30d"
    )  # fmt: skip
    text = said.out.removesuffix("\n")
    held = parse(text)
    assert held is not None
    [token] = store.tokens.find([held[0]])
    assert verify(token, held[1])
    assert (token.name, token.scopes) == ("ci", (Scope.ENQUEUE, Scope.READ))
    assert (token.queues, token.created_by) == (("images.*",), ME)
    assert token.expires_at == token.created_at + timedelta(days=30)
    assert "ci is good for enqueue, read in images.*, until 20" in said.err
    assert "cannot be shown again" in said.err
    assert text not in said.err
    assert refusal(token, Scope.READ, "images.small", datetime.now(UTC)) is None


def test_without_an_end_it_is_good_until_it_is_revoked(cli: Cli, store: Store) -> None:
    said = cli("tokens", "create", "ci", "--scope", "admin")
    assert "admin in all queues, until it is revoked." in said.err
    [token] = store.tokens.list(10)
    assert (token.expires_at, token.queues) == (None, ())


def test_a_program_gets_it_as_json(cli: Cli, store: Store) -> None:
    said = cli("tokens", "create", "ci", "--scope", "operate", "--expires", "12h", "--json")
    document = said.document
    held = parse(document["token"])
    assert held is not None
    assert (document["id"], document["name"], document["scopes"]) == (str(held[0]), "ci", ["operate"])
    assert said.err == ""


def test_the_list_shows_what_each_is_good_for_and_nothing_that_is_secret(cli: Cli, store: Store) -> None:
    assert cli("tokens", "list").out == "There are no tokens.\n"
    old = make(cli, "old", "--expires", "0.001s")
    gone, ci = make(cli, "gone"), make(cli, "ci", "--queue", "images.*", "--queue", "mail-?")
    cli("tokens", "revoke", "gone")
    held = parse(ci)
    assert held is not None
    store.tokens.used([held[0]])
    table, listed = cli("tokens", "list").out, cli("tokens", "list", "--json")
    assert re.search(r"ci +good +read .* images\.\*, mail-\?", table)
    assert re.search(r"old +expired +read .* never +all", table)
    assert re.search(r"gone +revoked ", table)
    states = {each["name"]: each["state"] for each in listed.document["tokens"]}
    assert states == {"ci": "good", "old": "expired", "gone": "revoked"}
    [shown] = [each for each in listed.document["tokens"] if each["name"] == "ci"]
    assert shown["last_used_at"] is not None
    [token] = store.tokens.find([held[0]])
    for text in (old, gone, ci):
        assert text[26:] not in table + listed.out
    assert "digest" not in listed.out
    assert token.digest.hex() not in listed.out
    assert len(cli("tokens", "list", "--limit", "1", "--json").document["tokens"]) == 1


def test_a_list_that_is_cut_says_so_and_all_shows_all(cli: Cli, store: Store) -> None:
    for name in ("a", "b", "c"):
        make(cli, name)
    make(cli, "old", "--expires", "0.001s")
    parent = store.tokens.named("a")
    assert parent is not None
    now = store.clock.now()
    browser, _ = new_token(
        "a:browser-1",
        ["read"],
        [],
        at=now,
        by="token a",
        expires_at=now + timedelta(hours=1),
        parent=parent.id,
    )
    store.tokens.create(browser)
    cut = cli("tokens", "list", "--limit", "2")
    assert cut.out.endswith("There are more: --all shows them.\n")
    document = cli("tokens", "list", "--limit", "2", "--json").document
    assert ([each["name"] for each in document["tokens"]], document["more"]) == (["c", "b"], True)
    whole = cli("tokens", "list", "--limit", "2", "--all", "--json").document
    assert ([each["name"] for each in whole["tokens"]], whole["more"]) == (["c", "b", "a", "old"], False)
    assert "There are more" not in cli("tokens", "list", "--limit", "4").out
    good = cli("tokens", "list", "--state", "good", "--json").document["tokens"]
    assert [each["name"] for each in good] == ["c", "b", "a"]
    assert cli("tokens", "list", "--state", "revoked").out == "There are no such tokens.\n"
    assert "a:browser-1" in cli("tokens", "list", "--sign-ins").out
    assert cli("tokens", "revoke", browser.id.hex[-8:]).out.startswith("a:browser-1 is revoked")


@pytest.mark.parametrize("named", ["name", "id", "last digits", "the token itself"])
def test_it_is_revoked_by_name_id_digits_or_itself_and_twice_is_harmless(
    cli: Cli, store: Store, named: str
) -> None:
    text = make(cli)
    make(cli, "other")
    token = store.tokens.named("ci")
    assert token is not None
    given = {"name": "ci", "id": str(token.id), "last digits": f"…{token.id.hex[-8:]}"}.get(named, text)
    said = cli("tokens", "revoke", given)
    assert (said.code, said.out) == (exits.OK, "ci is revoked: whoever has it is refused from now on.\n")
    [found] = store.tokens.find([token.id])
    assert (refusal(found, Scope.READ, None, datetime.now(UTC)), found.revoked_by) == ("revoked", ME)
    again = cli("tokens", "revoke", given)
    assert (again.code, again.out) == (exits.OK, "ci was revoked before.\n")
    document = cli("tokens", "revoke", given, "--json").document
    assert document == {"token": str(token.id), "name": "ci", "revoked": False}
    assert store.tokens.named("other") is not None


def test_a_name_can_be_given_anew_when_its_token_is_revoked(cli: Cli, store: Store) -> None:
    make(cli)
    taken = cli("tokens", "create", "ci", "--scope", "read")
    assert (taken.code, taken.out) == (exits.USAGE, "")
    assert "There is a token ci that is not revoked" in taken.err
    cli("tokens", "revoke", "ci")
    make(cli)
    assert cli("tokens", "revoke", "ci").out.startswith("ci is revoked")
    assert [token.name for token in store.tokens.list(10)] == ["ci", "ci"]


def test_a_token_that_is_not_there_is_told_with_those_that_are(cli: Cli) -> None:
    nothing = cli("tokens", "revoke", "ci")
    assert (nothing.code, nothing.out) == (exits.NOT_FOUND, "")
    assert "There is no token ci. There is none at all." in nothing.err
    make(cli, "deploy")
    assert "Did you mean deploy?" in cli("tokens", "revoke", "deplyo").err
    for id in ("01a1e5e6-3f60-7000-8db6-a2aae2f3f190", "…ffffffff"):
        assert cli("tokens", "revoke", id).code == exits.NOT_FOUND


def test_digits_that_fit_several_are_refused(cli: Cli, store: Store) -> None:
    make(cli, "a")
    make(cli, "b")
    [first, second] = store.tokens.list(10)
    assert first.id.hex[:4] == second.id.hex[:4]
    said = cli("tokens", "revoke", first.id.hex[:4])
    assert said.code == exits.USAGE
    assert "could be any of these" in said.err
    assert all(token.revoked_at is None for token in store.tokens.list(10))


BAD = [
    (["tokens", "create", "ci"], "Missing option '--scope'"),
    (["tokens", "create", "ci", "--scope", "root"], "'root' is not one of 'enqueue', 'read', 'operate', 'admin'"),
    (["tokens", "create", "a b", "--scope", "read"], "no name of a token"),
    (["tokens", "create", "x" * (TOKEN_NAME_LIMIT + 1), "--scope", "read"], "1 to 100"),
    (["tokens", "create", "ci", "--scope", "read", "--queue", "a b"], "no pattern of queues"),
    (["tokens", "create", "ci", "--scope", "read", "--expires", "soon"], "no duration"),
    (["tokens", "create", "ci", "--scope", "read", "--expires", "0s"], "longer than nothing"),
    (["tokens", "create", "ci", "--scope", "read", "--expires", "3651d"], "at most 3,650 days"),
    (["tokens", "create", "ci", "--scope", "read", "--expires", "9999999d"], "no date"),
    (["tokens", "create", "ci", "--scope", "read", "--expires", "99999999999999d"], "longer than any calendar"),
    (["tokens", "list", "--limit", "1001"], "1<=x<=1000"),
    (["audit", "list", "--limit", "0"], "1<=x<=1000"),
    (["audit", "list", "--before", "x"], "'x' is not a valid whole number. See"),
    (["audit", "list", "--before", "9223372036854775808"], "not in the range"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[" ".join(each)[:60] for each, _ in BAD])
def test_bad_input_is_told_in_one_line_and_nothing_is_done(
    cli: Cli, store: Store, arguments: list[str], says: str
) -> None:
    said = cli(*arguments)
    assert (said.code, said.out) == (exits.USAGE, "")
    assert says in said.err
    assert said.err.count("\n") == 1
    assert store.tokens.list(10) == []
    assert store.audit.list(limit=10) == []


def test_a_token_is_in_no_error_no_log_and_no_table(
    cli: Cli, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        text = make(cli)
        said: list[Said] = [
            cli("tokens", "create", text, "--scope", "read"),
            cli("tokens", "create", text[:30], "--scope", "read"),
            cli("tokens", "create", "ci", "--scope", "read"),
            cli("tokens", "revoke", text[:40]),
            cli("tokens", "revoke", f"{text}x"),
            cli("tokens", "list"),
            cli("tokens", "list", "--json"),
            cli("tokens", "revoke", text),
            cli("tokens", "revoke", text[:26] + "A" * 42),
            cli("audit", "list"),
            cli("audit", "list", "--json"),
        ]
    secret = text[26:]
    everything = "".join(each.out + each.err for each in said) + caplog.text
    assert secret[:10] not in everything
    assert [each.code for each in said] == [2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0]


def test_a_token_of_another_store_is_told_without_being_said_back(cli: Cli) -> None:
    text = "lsh_" + "A" * 64
    said = cli("tokens", "revoke", text)
    assert said.code == exits.NOT_FOUND
    assert "is not in the store" in said.err
    assert "AAAA" not in said.err


def test_the_audit_says_who_did_what(cli: Cli, store: Store) -> None:
    assert cli("audit", "list").out == "Nobody has done anything.\n"
    make(cli)
    cli("queues", "pause", "mail")
    cli("tokens", "revoke", "ci")
    store.audit.record("sign in", "dashboard", by="ann")
    table = cli("audit", "list").out
    rows = [line.split(maxsplit=3)[3] for line in table.splitlines()[2:]]
    assert [" ".join(row.split()) for row in rows] == [
        "sign in ann dashboard", f"revoke {ME} token ci", f"pause {ME} mail", f"create {ME} token ci",
    ]  # fmt: skip
    first = cli("audit", "list", "--subject", "token ci", "--json").document
    assert [row["action"] for row in first["audit"]] == ["revoke", "create"]
    assert first["next_before"] is None
    assert [row["subject"] for row in cli("audit", "list", "--actor", "ann", "--json").document["audit"]] == [
        "dashboard"
    ]
    assert "pause" in cli("audit", "list", "--action", "pause").out
    assert (
        cli("audit", "list", "--actor", "eve", "--action", "pause").out
        == "Nothing with actor eve, action pause.\n"
    )


def test_no_name_forges_a_line_of_the_audit_or_speaks_to_the_terminal(cli: Cli, store: Store) -> None:
    store.queues.pause("mail", by="eve\n     9   2026-01-01 00:00:00   revoke   ann\x1b[2J\u202e")
    out = cli("audit", "list").out
    assert len(out.splitlines()) == 3
    assert r"eve\n" in out
    assert r"\x1b[2J\u202e" in out
    assert "\x1b" not in out
    [row] = cli("audit", "list", "--json").document["audit"]
    assert row["actor"].startswith("eve\n")


def test_the_audit_is_read_page_by_page(cli: Cli, store: Store) -> None:
    for number in range(5):
        store.audit.record("do", f"s{number}", by="ann")
    page = cli("audit", "list", "--limit", "2", "--json").document
    assert [row["subject"] for row in page["audit"]] == ["s4", "s3"]
    more = f"More: add --before {page['next_before']}"
    assert cli("audit", "list", "--limit", "2").out.endswith(f"{more}\n")
    rest = cli("audit", "list", "--before", str(page["next_before"]), "--json").document
    assert [row["subject"] for row in rest["audit"]] == ["s2", "s1", "s0"]
    assert rest["next_before"] is None


def test_where_several_filters_have_not_looked_at_all_lines_it_is_said_and_the_next_page_goes_on(
    cli: Cli, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lateshift.cli.audit.AUDIT_AT_ONCE", 10)
    monkeypatch.setattr("lateshift.cli.audit.AUDIT_LOOKED_AT", 20)
    assert AUDIT_LOOKED_AT % AUDIT_AT_ONCE == 0
    for _ in range(25):
        store.audit.record("do", "a", by="ann")
    said = cli("audit", "list", "--actor", "ann", "--action", "rare")
    assert "The newest 20 lines with this actor were looked at.\nMore: add --before " in said.out
    before = cli("audit", "list", "--actor", "ann", "--action", "rare", "--json").document["next_before"]
    last = cli("audit", "list", "--actor", "ann", "--action", "rare", "--before", str(before), "--json")
    assert last.document == {"audit": [], "next_before": None}
