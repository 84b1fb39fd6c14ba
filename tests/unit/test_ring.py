"""The key ring: what it is read from, what it seals, and what it never shows."""

import os
from base64 import b64encode
from pathlib import Path
from uuid import UUID

import pytest

from lateshift.config import Settings, load
from lateshift.errors import SealBroken, SealKeyMissing, SealKeysInvalid
from lateshift.model.sealed import MASK, is_sealed, key_of, masked, masked_text
from lateshift.sealing.ring import Ring, new_key, ring_of

ONE, TWO, DIGEST = new_key("one"), new_key("two"), new_key("digest")
JOB, OTHER = UUID(int=1), UUID(int=2)
WRONG = [
    ("nothing", "each key is ID:BASE64"),
    ("no good:AAAA", "each key is ID:BASE64"),
    ("a:", "the key a is not 32 bytes"),
    ("a:####", "the key a is not 32 bytes"),
    (f"a:{b64encode(bytes(31)).decode()}", "the key a is not 32 bytes"),
    (f"{'x' * 41}:{b64encode(bytes(32)).decode()}", "up to 40 letters"),
]


@pytest.mark.parametrize(("line", "says"), WRONG, ids=str)
def test_a_wrong_line_is_refused_and_not_repeated(line: str, says: str) -> None:
    with pytest.raises(SealKeysInvalid, match=says) as refused:
        Ring([line])
    text = line.partition(":")[2]
    assert not text or text not in str(refused.value)


def test_two_keys_with_one_id_are_refused() -> None:
    with pytest.raises(SealKeysInvalid, match="two keys have the id one"):
        Ring([ONE, new_key("one")])


def test_the_first_key_seals_and_all_of_them_open() -> None:
    old, new = Ring([ONE]), Ring([TWO, ONE])
    sealed = old.of_job(JOB).close("payload", b'{"a":1}')
    assert (is_sealed(sealed), key_of(sealed)) == (True, "one")
    assert new.of_job(JOB).open("payload", sealed) == b'{"a":1}'
    renewed = new.of_job(JOB).renew(sealed)
    assert key_of(renewed) == "two"
    assert new.of_job(JOB).renew(renewed) == renewed
    assert Ring([TWO]).of_job(JOB).open("payload", renewed) == b'{"a":1}'
    with pytest.raises(SealKeyMissing, match="sealed with the key two"):
        old.of_job(JOB).open("payload", renewed)


def test_the_same_value_is_never_sealed_alike() -> None:
    seal = Ring([ONE]).of_job(JOB)
    assert len({seal.close("payload", b"1") for _ in range(100)}) == 100


def test_a_value_is_bound_to_its_job_its_field_and_its_session() -> None:
    ring = Ring([ONE])
    sealed = ring.of_job(JOB).close("payload", b"1")
    for seal, field in (
        (ring.of_job(OTHER), "payload"),
        (ring.of_job(JOB), "result"),
        (ring.of_session("q", "s"), "payload"),
        (ring.of_spool(), "payload"),
    ):
        with pytest.raises(SealBroken):
            seal.open(field, sealed)
    state = ring.of_session("q", "s").close("state", b"1")
    with pytest.raises(SealBroken):
        ring.of_session("q", "t").open("state", state)


def test_whatever_byte_is_changed_it_is_noticed() -> None:
    seal = Ring([ONE]).of_job(JOB)
    sealed = seal.close("payload", b'{"name":"Ada"}')
    for place in range(len(sealed)):
        for other in (b"A", b"B", b'"', b":"):
            changed = sealed[:place] + other + sealed[place + 1 :]
            if changed != sealed:
                with pytest.raises((SealBroken, SealKeyMissing)):
                    seal.open("payload", changed)


@pytest.mark.parametrize(
    "value", [b"", b"{}", b'"sealed:1:"', b'"sealed:1:one:payload:"', b'"sealed:1:one:payload:AAAA"']
)
def test_what_is_not_whole_is_broken(value: bytes) -> None:
    with pytest.raises(SealBroken):
        Ring([ONE]).of_job(JOB).open("payload", value)


def test_digests_stay_when_keys_are_rotated_and_differ_from_ring_to_ring() -> None:
    assert Ring([ONE, DIGEST]).digest(b"a") == Ring([TWO, DIGEST]).digest(b"a")
    assert Ring([ONE, DIGEST]).digest(b"a") != Ring([ONE, new_key("digest")]).digest(b"a")
    assert len(Ring([DIGEST]).digest(b"a")) == 16
    with pytest.raises(SealKeyMissing, match="lateshift keys new digest"):
        Ring([ONE]).digest(b"a")


def test_the_digest_key_seals_nothing() -> None:
    ring = Ring([DIGEST])
    assert (ring.current, ring.ids, ring.has_digest) == (None, (), True)
    with pytest.raises(SealKeyMissing, match="lateshift keys new"):
        ring.of_job(JOB).close("payload", b"1")


def test_a_ring_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATESHIFT_KEYS", f"{ONE}, {TWO}")
    assert ring_of(load()).ids == ("one", "two")


def test_a_ring_is_read_from_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    file = tmp_path / "ring"
    file.write_text(f"# keys\n\n{ONE}\n{TWO}\n")
    file.chmod(0o644)
    settings = Settings(keys_file=str(file))
    with pytest.raises(SealKeysInvalid, match="chmod 600"):
        ring_of(settings)
    file.chmod(0o640)
    assert ring_of(settings).ids == ("one", "two")


def test_a_ring_in_two_places_or_in_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SealKeysInvalid, match="in one place"):
        ring_of(Settings(keys=(ONE,), keys_file="ring"))
    with pytest.raises(SealKeysInvalid, match="cannot be read"):
        ring_of(Settings(keys_file=str(tmp_path / "ring")))


def test_keys_are_never_shown() -> None:
    secret = ONE.partition(":")[2]
    assert secret not in repr(Ring([ONE]))
    assert secret not in repr(Settings(keys=(ONE,)))
    assert repr(Ring()) == "<Ring without keys>"


def test_what_is_sealed_is_shown_as_a_mask() -> None:
    sealed = Ring([ONE]).of_job(JOB).close("payload", os.urandom(9))
    assert (masked(sealed), masked(b"1"), masked(None)) == (f'"{MASK}"'.encode(), b"1", None)
    assert (masked_text(sealed.decode()[1:-1]), masked_text("plain"), masked_text(None)) == (
        MASK,
        "plain",
        None,
    )


def test_a_key_needs_an_id_that_can_stand_in_a_ring() -> None:
    with pytest.raises(SealKeysInvalid, match="no id for a key"):
        new_key("a:b")
