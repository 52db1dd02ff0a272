"""A known secret is in no text that is shown, whatever encodes it and however much of it is there."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.known_secrets import FRAGMENT, HIDDEN, KnownSecrets, secrets_of_url

KEY = "sk-live_0123456789abcdefGHIJ.kl~mn"
SECRETS = KnownSecrets([], fragments=[KEY])


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(each):04x}" for each in text)


def percent(text: str) -> str:
    return "".join(f"%{ord(each):02x}" for each in text)


def entities(text: str) -> str:
    return "".join(f"&#{ord(each)};" for each in text)


ENCODINGS = [str, escaped, percent, entities, quote, html.escape, lambda text: quote(percent(text))]


@given(
    start=st.integers(0, len(KEY) - FRAGMENT),
    more=st.integers(0, len(KEY)),
    encode=st.sampled_from(ENCODINGS),
    around=st.tuples(st.sampled_from(["", "Incorrect key: ", '{"a": "']), st.sampled_from(["", " (401)", '"}'])),
)
def test_twelve_characters_of_a_key_are_hidden_in_each_encoding(
    start: int, more: int, encode: object, around: tuple[str, str]
) -> None:
    assert callable(encode)
    part = KEY[start : start + FRAGMENT + more]
    assert SECRETS.hide(f"{around[0]}{encode(part)}{around[1]}") == f"{around[0]}{HIDDEN}{around[1]}"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
def test_a_key_within_a_longer_base64_is_hidden(before: str) -> None:
    encoded = base64.b64encode(f"{before}{KEY}:more".encode()).decode()
    hidden = SECRETS.hide(f"Basic {encoded}")
    assert HIDDEN in hidden
    longest = max(hidden.replace("Basic ", "").split(HIDDEN), key=len)
    assert KEY[8:16].encode() not in base64.b64decode(longest[: len(longest) // 4 * 4])


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_a_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert SECRETS.hide(text) == text
    assert KnownSecrets([]).hide(text) == text


def test_a_hidden_part_of_a_json_text_leaves_json() -> None:
    text = '{"why": "the key \\u0073' + KEY[1:] + ' was sent", "n": 1}'
    assert json.loads(SECRETS.hide(text)) == {"why": f"the key {HIDDEN} was sent", "n": 1}


def test_a_path_and_a_certificate_are_hidden_as_a_whole_only() -> None:
    """Their parts are words of other texts."""
    pem = "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----"
    secrets = KnownSecrets([pem], fragments=[pem])
    assert (
        secrets.hide("a key begins with -----BEGIN PUBLIC KEY-----") == "a key begins with -----BEGIN PUBLIC KEY-----"
    )
    assert secrets.hide(f"sent {pem}") == f"sent {HIDDEN}"


@pytest.mark.parametrize(
    "said",
    [
        "no route for /services/T0AB/tok%65n-of-hook",
        "no route for /services/T0AB/token-of-hook",
        "GET https://u:pw-of-u@h.example/services/T0AB/token-of-hook?sig=0f0f0f0f failed",
        "unknown token-of-hook",
        "sig 0f0f0f0f",
        "user pw-of-u",
    ],
)
def test_no_part_of_a_secret_address_is_shown(said: str) -> None:
    url = "https://u:pw-of-u@h.example/services/T0AB/token-of-hook?sig=0f0f0f0f"
    hidden = KnownSecrets(secrets_of_url(url)).hide(said)
    assert HIDDEN in hidden
    for part in ("token-of-hook", "tok%65n-of-hook", "0f0f0f0f", "pw-of-u"):
        assert part not in hidden
