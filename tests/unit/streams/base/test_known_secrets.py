"""A known secret is in no text that is shown, whatever encodes it and however much of it is there."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.work import lines_run

from traceweir.streams.base.known_secrets import FRAGMENT, HIDDEN, KnownSecrets, secrets_of_url
from traceweir.streams.scoring.judges.errors import Secrets

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


def hidden_slowly(text: str, key: str) -> str:
    """Returns the text without the parts of a key that stand there as they are: tries each position."""
    parts = {key[at : at + FRAGMENT] for at in range(len(key) - FRAGMENT + 1)}
    inside = [False] * len(text)
    for start in range(len(text) - FRAGMENT + 1):
        if text[start : start + FRAGMENT] in parts:
            inside[start : start + FRAGMENT] = [True] * FRAGMENT
    return "".join(
        HIDDEN if within and not (at and inside[at - 1]) else "" if within else text[at]
        for at, within in enumerate(inside)
    )


part_of_key = st.tuples(st.integers(0, len(KEY)), st.integers(0, len(KEY))).map(lambda ends: KEY[min(ends) : max(ends)])


@pytest.mark.slow
@given(st.lists(part_of_key | st.text("a0 .=", max_size=9), max_size=8).map(" x".join))
@example(f"{KEY}{KEY}{KEY[3:30]}ab{KEY[:12]}c{KEY[-12:]}")
def test_each_part_of_a_key_is_hidden_wherever_it_begins(text: str) -> None:
    assert SECRETS.hide(text) == hidden_slowly(text, KEY)


def test_prose_is_searched_without_a_step_for_each_character() -> None:
    prose = "The answer names the tool, its arguments and what went wrong. " * 1_000
    assert lines_run(lambda: SECRETS.hide(prose)) < 100
    assert lines_run(lambda: SECRETS.hide(f'{prose}\\"{prose}')) < 200


def test_an_error_text_is_cut_before_it_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    hide = KnownSecrets.hide

    def spy(self: KnownSecrets, text: str) -> str:
        searched.append(len(text))
        return hide(self, text)

    monkeypatch.setattr(KnownSecrets, "hide", spy)
    assert Secrets([KEY]).hide(f"bad key {KEY} " + "\\u0061" * 200_000).startswith(f"bad key {HIDDEN} ")
    assert max(searched) <= 20_000


@pytest.mark.parametrize("more", range(0, 3 * len(KEY), 5))
def test_the_end_of_a_cut_error_text_shows_no_part_of_a_secret(more: int) -> None:
    """Many secrets become one mark, so that the end of the searched text would be shown."""
    pem = "-----BEGIN PRIVATE KEY-----\nabcdefgh\n-----END PRIVATE KEY-----"
    shown = Secrets([pem]).hide("x" * more + pem * 1_000)
    assert "BEGIN" not in shown
    assert HIDDEN in shown


@pytest.mark.slow
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
