"""Tells the words of a question that only ask, such as `when` and 언제: an answer has something in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from traceweir.scorers.text.folding import folded

_WORDS = """
what which who whom whose where when why how
wer wen wem wessen was wann wo wohin woher warum weshalb wieso wie wieviel welche welcher welches welchen welchem
que quien quienes donde cuando como cual cuales cuanto cuanta cuantos cuantas
что кто где куда откуда когда почему зачем как какой какая какое какие каков какова сколько ли
скажи скажите подскажи подскажите
ما ماذا متى أين لماذا كيف كم هل
क्या कौन किस किसे कहाँ कहां कब क्यों कैसे कैसा कैसी कितना कितने कितनी बताइए
뭐 뭘 왜 누가 좀 주
"""
"""English, German, Spanish, Russian, Arabic, Hindi and, after their stems, Korean."""

_KOREAN = (
    "어디",
    "무엇",
    "무슨",
    "누구",
    "언제",
    "어떻",
    "어떤",
    "어때",
    "어떠",
    "얼마",
    "몇",
    "어느",
    "알려",
    "가르쳐",
    "궁금",
)
"""The beginnings of Korean words."""

_UNSPACED = """
请问 告诉 什么 什麼 为什么 為什麼 谁 誰 哪里 哪裡 哪儿 哪个 哪些 哪 怎么样 怎么 怎麼 怎样 多少 多久 几(?!何|乎) 幾(?!何|乎) 吗 嗎 呢
何 いつ どこ どちら どれ どの どう いくら いくつ なぜ どうして 教えて ですか ますか でしょうか
อะไร ใคร ที่ไหน ไหน เมื่อไหร่ เมื่อไร ทำไม อย่างไร ยังไง เท่าไหร่ เท่าไร กี่ ไหม หรือไม่ หรือเปล่า
"""
"""Patterns of Chinese, Japanese and Thai, which write no blanks between words."""

_MARK = re.compile("[?\uff1f\u061f]")

_DENIAL = re.compile(
    r"\b(?:no|not|cannot|nothing|none|never|sorry|\w+n['’]t|nein|nicht|nichts|нет|не|لا|नहीं)\b"
    "|不|没|沒|无|無|ません|ない|いいえ|わから|ไม่|아니|모르|몰라|없",
    re.IGNORECASE,
)
"""Words of a refusal, and of an answer that denies or does not know."""


def without_asking(text: str) -> str:
    """Returns a question with blanks in place of the words that ask, for scripts without blanks between words.

    >>> without_asking("图书馆几点开门")
    '图书馆 点开门'
    """
    return text if text.isascii() else _unspaced().sub(" ", text)


def is_asking(element: str) -> bool:
    """Returns whether an element of a text is a word that only asks.

    >>> is_asking("when"), is_asking("언제"), is_asking("library")
    (True, True, False)
    """
    return element in _words() or element.startswith(_KOREAN)


def asks(text: str, elements: Sequence[str]) -> bool:
    """Returns whether a text with these elements is a question: it has a question mark, or a word that asks."""
    return bool(_MARK.search(text)) or any(map(is_asking, elements)) or without_asking(text) != text


def denies(text: str) -> bool:
    """Returns whether a short answer denies, refuses or does not know.

    >>> denies("I don't know."), denies("Canberra.")
    (True, False)
    """
    return bool(_DENIAL.search(text))


@cache
def _words() -> frozenset[str]:
    return frozenset(folded(_WORDS).split())


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile("|".join(sorted(_UNSPACED.split(), key=len, reverse=True)))
