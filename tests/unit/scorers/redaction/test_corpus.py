"""Holds redaction to its target on the corpus: recall by form and by kind, and innocent texts."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable

import pytest
from tests.support.redaction.innocent_texts import INNOCENT
from tests.support.redaction.measurement import Measurement, measure
from tests.support.redaction.secret_forms import FORMS, pieces_of, samples
from tests.support.redaction.secret_kinds import KINDS
from tests.support.work import calls_made

from traceweir.scorers.redaction.plain_text import plain_name
from traceweir.scorers.redaction.redaction import redact, redact_text

MIN_RECALL = 0.9
MAX_CHANGED = 0.01


@pytest.fixture(scope="module")
def measured() -> Measurement:
    return measure(redact_text)


def test_the_corpus_has_the_size_that_the_target_names() -> None:
    assert (len(KINDS) >= 25, len(FORMS), len(INNOCENT) >= 100) == (True, 8, True)
    assert len(set(INNOCENT)) == len(INNOCENT)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_nine_of_ten_secrets_are_found_in_every_form(form: str, measured: Measurement) -> None:
    assert measured.recall(form) >= MIN_RECALL, [sample.text for sample in measured.missed if sample.form == form]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_kind_is_found_in_most_forms(kind: str, measured: Measurement) -> None:
    missed = [sample.text for sample in measured.missed if sample.kind == kind]
    assert len(missed) <= len(FORMS) * 3 * (1 - MIN_RECALL), missed


@pytest.mark.slow
def test_at_most_one_of_a_hundred_innocent_texts_changes(measured: Measurement) -> None:
    assert len(measured.changed) <= MAX_CHANGED * len(INNOCENT), measured.changed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_other_secrets_of_the_same_kinds_are_found_too(seed: int) -> None:
    other = measure(redact_text, seed)
    assert min(other.recall(form) for form in FORMS) >= MIN_RECALL


def test_a_text_with_all_samples_loses_every_secret() -> None:
    by_form = defaultdict(list)
    for sample in samples(seed=3, per_cell=1):
        by_form[sample.form].append(sample)
    for form in ("key = value", "JSON member"):
        text = "\n\n".join(sample.text for sample in by_form[form])
        redacted = redact_text(text)
        left = [sample.kind for sample in by_form[form] if any(piece in redacted for piece in sample.pieces)]
        assert left == []


DISGUISES: dict[str, Callable[[str], str]] = {
    "a zero-width space between all characters": "\u200b".join,
    "a soft hyphen": lambda text: f"{text[:5]}\u00ad{text[5:]}",
    "a word joiner": lambda text: f"{text[: len(text) // 2]}\u2060{text[len(text) // 2 :]}",
    "full width": lambda text: "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in text),
    "letters of mathematics": lambda text: "".join(
        chr(ord(each) + 0x1D559) if "a" <= each <= "z" else each for each in text
    ),
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_secrets_are_found_in_every_disguise(disguise: str) -> None:
    rng, missed = random.Random(5), []
    for kind in KINDS:
        secret = kind.draw(rng)
        hidden = DISGUISES[disguise](secret.text if kind.has_form else f"{kind.name}={secret.text}")
        redacted = redact_text(f"I see {hidden}\n(there)")
        left = plain_name(redacted)
        if any(piece in left for piece in pieces_of(secret.core)):
            missed.append(hidden)
        assert redacted.startswith("I see ")
        assert redacted.endswith("\n(there)")
    assert len(missed) <= len(KINDS) * (1 - MIN_RECALL), missed


@pytest.mark.parametrize(("before", "after"), [("my", ""), ("Token", ""), ("a_", ""), ("", "xyz"), ("비밀", "입니다")])
def test_secrets_with_a_form_are_found_when_letters_stick_to_them(before: str, after: str) -> None:
    rng, missed = random.Random(5), []
    formed = [kind for kind in KINDS if kind.has_form]
    for kind in formed:
        secret = kind.draw(rng)
        redacted = redact_text(f"I see {before}{secret.text}{after} there")
        if any(piece in redacted for piece in pieces_of(secret.core)):
            missed.append((kind.name, redacted))
    # Cards, accounts, addresses and keys without a prefix are told by what is beside them.
    assert len(missed) <= 7, missed


HOSTILE = {
    "unseen characters": "a\u200b",
    "accents": "\u0301\u0323",
    "letters that become many": "\ufdfa",
    "full width": "ｐａｓｓｗｏｒｄ：",
    "pages": "https://a.com/home/b ",
    "pages in one address": "/home/b",
    "names of other languages": "密码:пароль=",
    "users of MySQL": "a:b@tcp(",
    "unclosed quotes": 'token="',
    "escaped quotes": 'token=\\"a ',
    "names without an end": "token=<",
    "tags": "<password>",
    "key blocks": "-----BEGIN PRIVATE KEY-----",
    "addresses": "://a:",
    "e-mail": "a@",
    "base64": "cGFzc3dvcmQ9aHVudGVyMiA",
    "percent signs": "%2541",
    "backslashes": "\\",
    "line breaks": "a1\n",
    "digits": "1",
    "cards": "4111 1111 1111 1111 ",
    "colons": "fe80:",
    "numbers to validate": "+82 10 1234 ",
    "Korean names": "비번=",
    "Korean names in a chain": "비밀번호=",
    "Korean names and values": "비번=a",
    "options": " --cookie a1b2c3d4 ",
    "all services": "datadog heroku twilio okta token key secret password ",
}


@pytest.mark.parametrize("unit", list(HOSTILE.values())[:8], ids=list(HOSTILE)[:8])
def test_the_calls_grow_with_the_text_and_not_faster(unit: str) -> None:
    def calls(length: int) -> int:
        text = unit * (length // len(unit))
        return calls_made(lambda: redact_text(text))

    calls(1_000)
    assert calls(40_000) <= 2.5 * calls(20_000) + 1_000


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_the_work_grows_with_the_text_and_not_faster(unit: str) -> None:
    def cpu_s(length: int) -> float:
        text = unit * (length // len(unit))
        start = time.process_time()
        redact_text(text)
        return time.process_time() - start

    cpu_s(1_000)
    assert cpu_s(160_000) < 16 * (min(cpu_s(20_000) for _ in range(3)) + 0.05)  # quadratic work takes 64 times as long


@pytest.mark.slow
def test_thousands_of_keys_with_one_redacted_form_are_numbered_in_linear_work() -> None:
    redacted = redact({f"user{number}@example.com": number for number in range(30_000)})

    assert isinstance(redacted, dict)
    assert len(redacted) == 30_000
