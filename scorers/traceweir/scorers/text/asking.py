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

_WORDS_OF_DENIAL = r"""
no(?!\.?\s*\d) nope not cannot nothing none never sorry dunno \w+n['’]t
nein nicht nichts nie niemals kein(?:e[mnrs]?)?
ni\s+idea nada nunca ning[uú]n[oa]?
нет не никогда ничего
لا(?=\s*(?:[^\w\s]|$)|\s+(?:شيء|أحد|[أايتن](?:عرف|علم|دري|ستطيع|وجد|مكن|توفر|فهم|ذكر|تذكر|ريد|قدر|ملك))) ليس ليست لست كلا
नहीं नहीँ नही
"""
"""Patterns of words. "No. 7" is a number, and لا begins names such as "La Paz"."""

_FORMS_OF_DENIAL = r"""
不(?:是|知道|清楚|确定|確定|明(?![飞飛])|行|能|可|会|會|好意思|[对對](?![称稱])|要|用|需要|了解|懂|存在)
[没沒](?:有|办法|辦法|人|听说|聽說) [无無](?:法|可奉告|理(?![数數]))
^\W*(?:[不没沒无無否]|なし|無し|いや|いえ)\W*$
ません いいえ (?<![少危幼切汚])ない(?:です|んです|[よねわ])*\W*$ (?:わか|分か|知)ら(?:ん|ず)
ไม่(?!กี่|นาน|เกิน|ถึง)
(?<!\w)아니(?!메) 아닙 아뇨 (?<!\w)안\s*(?:돼|됩|되) 모르(?:겠|는|지|죠|네|고|\W|$) 모릅 모른 몰라
(?<!틀림)(?<!문제)없(?:다|어|습|음|네|는|지|죠|을|었)
"""
"""Patterns of Chinese, Japanese, Thai and Korean. A single character can be part of a name, as 不 is of 不丹 (Bhutan)."""

_A_WORD = r"(?<![\w\u0900-\u0963\u0966-\u097f])(?:{})(?![\w\u0900-\u0963\u0966-\u097f])"
"""A word between blanks or marks: the vowel signs of Devanagari are letters here, its full stop is none."""


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

    >>> denies("I don't know."), denies("No."), denies("No. 7"), denies("不知道。"), denies("不丹。")
    (True, True, False, True, False)
    """
    return bool(_denial().search(text))


@cache
def _words() -> frozenset[str]:
    return frozenset(folded(_WORDS).split())


@cache
def _denial() -> re.Pattern[str]:
    word = _A_WORD.format("|".join(_WORDS_OF_DENIAL.split()))
    return re.compile("|".join([word, *_FORMS_OF_DENIAL.split()]), re.IGNORECASE)


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile("|".join(sorted(_UNSPACED.split(), key=len, reverse=True)))
