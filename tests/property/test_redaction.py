"""Tests redaction on generated texts of adjacent secrets and identifiers."""

from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from traceweir.scorers.redaction.redaction import redact, redact_text

PIECES = [
    *(
        "+821012345678",
        "(415) 555-2671",
        "(02) 123-4567",
        "415-555-2671",
        "010-1234-5678",
        "01012345678",
        "415 555 2671",
    ),
    *("a@b.co", "10.0.0.1", "/home/kim", "C:\\Users\\kim", "https://u:p@h", "postgres://h", "+1 ", "[REDACTED:email]"),
    *(
        "Bearer aaaaaaaaaaaaaaaaaaaaa1",
        "sk-aaaaaaaaaaaaaaa11",
        "eyJaaaaaaaaa.aaaaaaaaa.a",
        "xoxb-aaaaaaaaa",
        "kp_aaaaaaaaaaaaaaaa",
    ),
    *(
        "password=ab",
        "token: 'x",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "비밀번호",
        "REDACTED",
        "email",
    ),
    *"+-. :=@()[]1a\"'\\/_,%#\n가",
]
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text(max_size=30))
documents = st.recursive(
    st.one_of(texts, st.integers(), st.none(), st.booleans(), st.floats(allow_nan=False)),
    lambda children: st.one_of(st.lists(children, max_size=4), st.dictionaries(texts, children, max_size=4)),
    max_leaves=12,
)


def shape(value: JsonValue) -> object:
    """Returns the structure of the document without the content of its strings."""
    if isinstance(value, dict):
        return [shape(child) for child in value.values()]
    if isinstance(value, list):
        return (len(value), [shape(child) for child in value])
    return str if isinstance(value, str) else value


@given(texts)
@example("+821012345678" * 3)
@example("a@b.co%a@b.co%")
@example("(415) 555-2671(02) 123-4567" * 2)
@example("-010-1234-5678" * 3)
def test_redaction_of_a_text_is_idempotent(text: str) -> None:
    assert redact_text(redact_text(text)) == redact_text(text)


@given(documents)
def test_redaction_of_a_document_is_idempotent(document: JsonValue) -> None:
    assert redact(redact(document)) == redact(document)


@given(documents)
def test_a_redacted_document_has_the_shape_of_the_original(document: JsonValue) -> None:
    assert shape(redact(document)) == shape(document)


# The pieces contain none of these, because adjacent pieces can hide a number from a reader.
secrets = st.sampled_from(
    ["kim@example.com", "010-9876-5432", "(212) 555-0187", "+44 20 7946 0958", "ghp_" + "a1" * 18]
)


@given(texts, secrets, texts)
def test_a_secret_between_spaces_is_found_in_every_context(before: str, secret: str, after: str) -> None:
    assert secret not in redact_text(f"{before} {secret} {after}")


# About one UUID in some thousands contains text like a number; of the second kind nearly every UUID does.
uuids = st.uuids() | st.builds(
    lambda before, area, number: UUID((before + area + number)[:32]),
    st.text("0123456789abcdef", min_size=2, max_size=9),
    st.sampled_from(["010", "02", "070", "0505"]),
    st.text("0123456789", min_size=30, max_size=30),
)


@given(uuids, st.sampled_from(["", "kp:trace:"]))
@example(UUID("3f2a1010-4068-4295-9319-5d0c6f1b2a77"), "kp:trace:")
@example(UUID("3f2a1c4b-0505-4123-8123-5d0c6f1b2a77"), "")
def test_a_uuid_is_left_alone(uuid: UUID, prefix: str) -> None:
    assert redact_text(f"{prefix}{uuid}") == f"{prefix}{uuid}"
