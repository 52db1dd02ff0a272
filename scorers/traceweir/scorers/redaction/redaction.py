"""Takes secrets and personal identifiers out of what is about to be shared.

The kinds are those of KnowledgePulse's PII cleaner (packages/sdk/src/utils/pii-cleaner.ts), with Korean telephone numbers,
secrets named by a JSON key, and key blocks added. Each find becomes a token such as `[REDACTED:email]`. A text is rewritten
until nothing changes, so redacting twice is redacting once. Every pattern takes time proportional to the text.

Telephone numbers: `phonenumbers` has a matcher of its own. It was tried and is not used: it takes bare identifiers of ten
digits (orders, products) for American numbers, misses the made-up numbers that people write instead of their own
("(555) 123-4567"), and needs 3 ms for 300 characters. So a number is found by how it is written, and the library is asked
only where writing alone does not tell: what follows a plus sign, and groups set apart by blanks or dots.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import phonenumbers
from pydantic import JsonValue

from traceweir.scorers.redaction.custom_patterns import redact_own

NO_PATTERNS: Mapping[str, str] = MappingProxyType({})

_Replacement: TypeAlias = str | Callable[[re.Match[str]], str]


def redact(value: JsonValue, own: Mapping[str, str] = NO_PATTERNS) -> JsonValue:
    """A copy of a JSON document with every string in it redacted, keys included.

    Args:
        value: The document.
        own: Patterns of one's own by kind, in RE2's syntax. They come first, once.

    Strings under a key that names a secret (`password`, `api_key`, `auth_token`, ...) are replaced as a whole. Nothing is
    added or removed, and numbers stay. Keys that become equal are numbered in their order.

    >>> redact({"to": ["kim@example.com"], "password": "hunter2", "tries": 2})
    {'to': ['[REDACTED:email]'], 'password': '[REDACTED:password]', 'tries': 2}
    >>> redact({"kim@example.com": 1, "lee@example.com": 2})
    {'[REDACTED:email]': 1, '[REDACTED:email]#2': 2}
    """
    whole: list[JsonValue] = [value]
    # Copies that still hold the original's children, and whether a key above names a secret. Not by recursion: a document may
    # be nested deeper than Python's stack.
    pending: list[tuple[list[JsonValue] | dict[str, JsonValue], bool]] = [(whole, False)]
    while pending:
        container, secret = pending.pop()
        # Any: a key or a position, whichever the container takes.
        places: list[tuple[Any, JsonValue]] = list(
            container.items() if isinstance(container, dict) else enumerate(container)
        )
        for place, child in places:
            child_secret = secret or (isinstance(place, str) and _SECRET_KEY.search(place) is not None)
            replaced = child
            if isinstance(child, str):
                replaced = _token("password") if child_secret and child else redact_text(child, own)
            elif isinstance(child, dict | list):
                replaced = child.copy() if isinstance(child, list) else _with_redacted_keys(child, own)
                pending.append((replaced, child_secret))
            container[place] = replaced
    return whole[0]


def redact_text(text: str, own: Mapping[str, str] = NO_PATTERNS) -> str:
    """The text with every secret and identifier replaced by a token that names its kind.

    Args:
        text: Any text.
        own: Patterns of one's own by kind, in RE2's syntax. They come first, once.

    >>> redact_text("Mail kim@example.com or call 010-1234-5678 about HAT136 on 2024-05-20.")
    'Mail [REDACTED:email] or call [REDACTED:phone] about HAT136 on 2024-05-20.'
    """
    text = redact_own(text, own)
    while True:
        before = text
        for rule in _RULES:
            if any(hint in text for hint in rule.hints):
                text = rule.pattern.sub(rule.replacement, text)
        if text == before:
            return text


class _Rule(NamedTuple):
    hints: tuple[str, ...]
    """The pattern is tried only where the text contains one of these: most texts contain none, and `in` is quick."""
    pattern: re.Pattern[str]
    replacement: _Replacement


def _token(kind: str) -> str:
    return f"[REDACTED:{kind}]"


def _phone_if_possible(match: re.Match[str]) -> str:
    """Of `+82 10 1234 5678 2024`, redact as much as is a number, or failing that, has the length of one in its country."""
    number = match[0]
    ends = [end for end in range(len(number), 2, -1) if number[end : end + 1] in ("", " ", ".", "-", "(")]
    for suits in (phonenumbers.is_valid_number, _has_possible_length):
        for end in ends:
            try:
                if suits(phonenumbers.parse(number[:end])):
                    return _token("phone") + number[end:]
            except phonenumbers.NumberParseException:  # no such country, or too short
                break
    return number


def _has_possible_length(number: phonenumbers.PhoneNumber) -> bool:
    # Not `is_possible_number`: it also takes what could only be dialled within a city.
    possible = phonenumbers.is_possible_number_with_reason(number) == phonenumbers.ValidationResult.IS_POSSIBLE
    return bool(possible)


def _phone_if_assigned(match: re.Match[str]) -> str:
    """Groups of digits set apart by blanks or dots are a number only if Korea or North America has assigned it."""
    number = phonenumbers.parse(match[0], "KR" if match[0].startswith("0") else "US")
    return _token("phone") if phonenumbers.is_valid_number(number) else match[0]


def _phone_but_no_uuid(match: re.Match[str]) -> str:
    """Of a UUID such as `3f2a1010-4068-4295-9319-5d0c6f1b2a77` a part would be a number; it is matched first, and stays as it is.

    What stands before a number is not asked instead: people do write `HP010-1234-5678`, and a part of a UUID may stand between hyphens.
    """
    return match["uuid"] or _token("phone")


def _with_redacted_keys(document: dict[str, JsonValue], own: Mapping[str, str]) -> dict[str, JsonValue]:
    keys = {key: redact_text(key, own) for key in document}
    taken = {key for key, redacted in keys.items() if key == redacted}
    if len(taken) == len(keys):
        return document.copy()
    copy: dict[str, JsonValue] = {}
    for key, value in document.items():
        free, number = keys[key], 1
        while key != free and free in taken:
            number += 1
            free = f"{keys[key]}#{number}"
        taken.add(free)
        copy[free] = value
    return copy


_NAMES_OF_SECRETS = (
    r"(?:passwords?|passwd|pwd|passphrase|secret|token|(?:api|access|private|secret)[_-]?key|api[_-]?secret"
    r"|비밀번호|비번|암호)"
)
_SECRET_KEY = re.compile(rf"{_NAMES_OF_SECRETS}$", re.IGNORECASE)
_QUOTE = r"\\{0,7}['\"]"  # JSON written into a text comes with its quotes escaped, once or more
_NOT_YET = r"(?!\[REDACTED:)"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_UUID = "-".join(rf"[0-9A-Fa-f]{{{count}}}" for count in (8, 4, 4, 4, 12))
_TO_END_OF_WORD = r"[^\s'\"`,;)}\]]*"


def _rule(hints: str, kind: str | Callable[[re.Match[str]], str], *alternatives: str, flags: int = re.ASCII) -> _Rule:
    return _Rule(
        tuple(hints.split("|")),
        re.compile("|".join(alternatives), flags),
        _token(kind) if isinstance(kind, str) else kind,
    )


# Secrets first: `password=kim@example.com` is a password.
# What may stand before a match is restricted only where no match can end just there: else replacing one would free the next,
# and a text of n such neighbours would be read n times.
_RULES = (
    _rule("-----BEGIN", "private_key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"),
    _rule(
        "://",
        "connection_string",
        r"(?:postgres(?:ql)?|mysql|mariadb|mssql|rediss?|mongodb|amqps?)(?:\+[a-z0-9]{1,16})?"
        rf"://{_NOT_YET}[^\s'\"`,)}}\]]+",
        rf"(?<=://){_NOT_YET}[^\s/:@'\"`]*:[^\s/@'\"`]+@{_TO_END_OF_WORD}",  # user and password in any other address
        flags=re.IGNORECASE | re.ASCII,
    ),
    _rule(
        "earer|EARER",
        lambda match: f"{match[1]} {_token('bearer_token')}",
        r"(Bearer)\s+(?!kp_)[A-Za-z0-9_.~+/=-]{20,}",
        flags=re.IGNORECASE | re.ASCII,
    ),
    _rule("eyJ", "bearer_token", r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"),  # a JSON Web Token
    # A digit is asked for, so that hyphenated words ("sk-learn-compatible-estimators") stay.
    _rule("sk-", "api_key", r"(?<![\w-])sk-(?=[a-zA-Z_-]*\d)[\w-]{16,}"),
    _rule("gh|github_pat_", "api_key", r"gh[a-z]_[A-Za-z0-9]{36,}", r"github_pat_\w{22,}"),
    _rule("AKIA|ASIA", "api_key", r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    _rule("kp_", "api_key", r"kp_[A-Za-z0-9]{16,}"),
    _rule("xox", "api_key", r"(?<![A-Za-z0-9-])xox[a-z]-[A-Za-z0-9-]{8,}"),
    _rule(
        "=|:",
        lambda match: f"{match[1]}{match['quote'] or ''}{_token('password')}",
        rf"({_NAMES_OF_SECRETS}(?:{_QUOTE})?\s*[=:]\s*)(?:"
        # To the quote that opened it, unless that is escaped once more.
        rf"(?P<quote>{_QUOTE}){_NOT_YET}(?:(?!(?<!\\)(?P=quote))[^\n])+"
        rf"|(?!{_QUOTE}){_NOT_YET}[^\s'\"`,;)}}\[\]]{{2,}})",
        flags=re.IGNORECASE,
    ),
    _rule("@", "email", r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]+\.[A-Za-z]{2,}(?![A-Za-z0-9-])"),
    _rule("+", _phone_if_possible, r"(?<!\+)\+[1-9][\d ().-]{5,22}\d(?!\d)"),
    _rule(  # Korean; without groups only mobile numbers are known
        "0",
        _phone_but_no_uuid,
        rf"(?P<uuid>{_UUID})",
        r"(?<![\w.+-])(?:010\d{8}|01[16-9]\d{7,8})(?!\w)",
        r"(?<![\d+])01[016-9][-. ]\d{3,4}[-. ]\d{4}(?!\d)",
        r"(?:\(0\d{1,2}\) ?|(?<![\d+])0(?:2|[3-6]\d|[78]0|50\d)(?:-|\) ?))\d{3,4}[-. ]\d{4}(?!\d)",
    ),
    _rule(  # North American
        "-|(",
        "phone",
        r"(?:(?:(?<!\d)\+?1[-. ])?\(\d{3}\)[-. ]?|(?<![\d+-])(?:\+?1[-. ])?\d{3}-)\d{3}[-. ]\d{4}(?!\d)",
    ),
    _rule(
        ".| ",
        _phone_if_assigned,
        r"(?<![\w+.-])(?:0\d{1,2}[. ]\d{3,4}|(?:1[. ])?[2-9]\d\d[. ]\d{3})[. ]\d{4}(?![-.]?\d|\w)",
    ),
    _rule(".", "ip", rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?\d)"),
    _rule(
        "/home/|Users",
        "filepath",
        rf"/(?:home|Users)/[^\s/'\"`,;)}}\]\[]{_TO_END_OF_WORD}",
        rf"[A-Za-z]:\\+Users\\+[^\s\\'\"`,;)}}\]\[]{_TO_END_OF_WORD}",
    ),
)
