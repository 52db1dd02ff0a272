"""Stems English words with the Porter stemmer that rouge-score uses: NLTK's, in its default mode.

Importing NLTK's own takes all of NLTK: 0.2 s of CPU and 27 MB in each scoring process; with SciPy installed, which NLTK
then imports too, 0.9 s and 94 MB. A test compares both stemmers.

Source: Porter, 1980, https://tartarus.org/martin/PorterStemmer/def.txt, with NLTK's changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Condition: TypeAlias = Callable[[str], bool]
"""Whether a suffix can be replaced, by what is before it."""
Rules: TypeAlias = tuple[tuple[str, str, Condition], ...]
"""Suffixes and what replaces them. The first suffix that fits is the only one that is tried."""


class PorterStemmer:
    """Stems words for `rouge_score.tokenize`."""

    def stem(self, word: str) -> str:
        """Returns the stem of a word, which must be in lower case.

        >>> [PorterStemmer().stem(word) for word in ("caresses", "relational", "flies", "skies", "hopping")]
        ['caress', 'relat', 'fli', 'sky', 'hop']
        """
        if (irregular := _IRREGULAR.get(word)) is not None:
            return irregular
        if len(word) <= 2:
            return word
        for step in (_plural, _past_or_gerund, _final_y, _double_suffix, _step_3, _step_4, _final_e, _final_ll):
            word = step(word)
        return word


_UNCHANGED = ("sky", "news", "howe", "inning", "outing", "canning", "proceed", "exceed", "succeed")
_PLURALS = {"skies": "sky", "innings": "inning", "outings": "outing", "cannings": "canning"}
_GERUNDS = {"dying": "die", "lying": "lie", "tying": "tie"}
_IRREGULAR = _PLURALS | _GERUNDS | {word: word for word in _UNCHANGED}


def _shape(stem: str) -> str:
    """Returns `v` for each vowel and `c` for each consonant; y is a vowel after a consonant."""
    shape = ""
    for letter in stem:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    return _shape(stem).count("vc")


def _has_measure(stem: str) -> bool:
    return "vc" in _shape(stem)


def _has_measure_above_1(stem: str) -> bool:
    return _measure(stem) > 1


def _has_vowel(stem: str) -> bool:
    return "v" in _shape(stem)


def _ends_with_double_consonant(word: str) -> bool:
    return word[-1:] == word[-2:-1] and _shape(word).endswith("c")


def _ends_short(stem: str) -> bool:
    """Whether a stem is a vowel and a consonant, or ends with consonant, vowel, and a consonant other than w, x and y."""
    shape = _shape(stem)
    return shape == "vc" or (shape.endswith("cvc") and stem[-1] not in "wxy")


def _rules(replacements: Mapping[str, str], condition: Condition = _has_measure) -> Rules:
    return tuple((suffix, replacement, condition) for suffix, replacement in replacements.items())


def _replaced(word: str, rules: Rules) -> str:
    for suffix, replacement, condition in rules:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            return stem + replacement if condition(stem) else word
    return word


def _plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_or_gerund(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _has_measure(word[:-3]) else word
    for suffix in ("ed", "ing"):
        stem = word.removesuffix(suffix)
        if stem != word and _has_vowel(stem):
            break
    else:
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_with_double_consonant(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _final_y(word: str) -> str:
    stem = word.removesuffix("y")
    return stem + "i" if stem != word and len(stem) > 1 and _shape(stem).endswith("c") else word


def _double_suffix(word: str) -> str:
    # As in NLTK, another suffix can follow "alli": "rationalli" loses both.
    if word.endswith("alli") and _has_measure(word[:-4]):
        word = word[:-2]
    return _replaced(word, _STEP_2)


def _step_3(word: str) -> str:
    return _replaced(word, _STEP_3)


def _step_4(word: str) -> str:
    return _replaced(word, _STEP_4)


def _final_e(word: str) -> str:
    stem = word.removesuffix("e")
    if stem == word:
        return word
    measure = _measure(stem)
    return stem if measure > 1 or (measure == 1 and not _ends_short(stem)) else word


def _final_ll(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _has_measure_above_1(word[:-1]) else word


_STEP_2: Rules = (
    *_rules({"ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble"}),
    *_rules({"entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate"}),
    *_rules({"ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al"}),
    *_rules({"iviti": "ive", "biliti": "ble", "fulli": "ful"}),
    ("logi", "log", lambda stem: _has_measure(stem + "l")),
)
_STEP_3 = _rules({"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""})
_STEP_4: Rules = (
    *_rules(dict.fromkeys(("al", "ance", "ence", "er", "ic", "able", "ible", "ant"), ""), _has_measure_above_1),
    *_rules(dict.fromkeys(("ement", "ment", "ent"), ""), _has_measure_above_1),
    ("ion", "", lambda stem: _has_measure_above_1(stem) and stem[-1] in "st"),
    *_rules(dict.fromkeys(("ou", "ism", "ate", "iti", "ous", "ive", "ize"), ""), _has_measure_above_1),
)
