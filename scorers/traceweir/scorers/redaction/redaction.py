"""Redacts secrets and personal identifiers from documents before they are published.

The kinds are those of KnowledgePulse's PII cleaner (packages/sdk/src/utils/pii-cleaner.ts), plus Korean telephone
numbers, secrets named by a JSON key, and key blocks. Each match becomes a token such as `[REDACTED:email]`. The rules
are applied until the text does not change any more, so redaction is idempotent. Every pattern takes time proportional
to the text.

Telephone numbers: the matcher of `phonenumbers` was tried and rejected. The matcher reads identifiers of ten digits
(orders, products) as American numbers, misses the fictitious numbers that people write instead of their own
("(555) 123-4567"), and needs 3 ms for 300 characters. Therefore the patterns here match numbers by their format. The
library validates a match only where the format is ambiguous: numbers after a plus sign, and groups separated by spaces
or dots.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import phonenumbers
from pydantic import JsonValue

from traceweir.scorers.redaction.custom_patterns import redact_custom

NO_PATTERNS: Mapping[str, str] = MappingProxyType({})

_Replacement: TypeAlias = str | Callable[[re.Match[str]], str]


def redact(value: JsonValue, custom_patterns: Mapping[str, str] = NO_PATTERNS) -> JsonValue:
    """Returns a copy of a JSON document with every string redacted, including the keys.

    Args:
        value: The document.
        custom_patterns: Additional patterns in RE2's syntax, by kind. They are applied first, once.

    Strings under a key that names a secret (`password`, `api_key`, `auth_token`, ...) are replaced completely. No
    value is added or removed, and numbers stay unchanged. Keys that become equal are numbered in their order.

    >>> redact({"to": ["kim@example.com"], "password": "hunter2", "tries": 2})
    {'to': ['[REDACTED:email]'], 'password': '[REDACTED:password]', 'tries': 2}
    >>> redact({"kim@example.com": 1, "lee@example.com": 2})
    {'[REDACTED:email]': 1, '[REDACTED:email]#2': 2}
    """
    whole: list[JsonValue] = [value]
    # Copies that still contain the children of the original, and whether a parent key names a secret. A stack replaces
    # recursion, because a document can be nested deeper than Python's recursion limit.
    pending: list[tuple[list[JsonValue] | dict[str, JsonValue], bool]] = [(whole, False)]
    while pending:
        container, secret = pending.pop()
        # Any: a key of a dict or a position in a list.
        places: list[tuple[Any, JsonValue]] = list(
            container.items() if isinstance(container, dict) else enumerate(container)
        )
        for place, child in places:
            child_secret = secret or (isinstance(place, str) and _SECRET_KEY.search(place) is not None)
            replaced = child
            if isinstance(child, str):
                replaced = _token("password") if child_secret and child else redact_text(child, custom_patterns)
            elif isinstance(child, dict | list):
                replaced = child.copy() if isinstance(child, list) else _with_redacted_keys(child, custom_patterns)
                pending.append((replaced, child_secret))
            container[place] = replaced
    return whole[0]


def redact_text(text: str, custom_patterns: Mapping[str, str] = NO_PATTERNS) -> str:
    """Returns the text with every secret and identifier replaced by a token that names its kind.

    Args:
        text: Any text.
        custom_patterns: Additional patterns in RE2's syntax, by kind. They are applied first, once.

    >>> redact_text("Mail kim@example.com or call 010-1234-5678 about HAT136 on 2024-05-20.")
    'Mail [REDACTED:email] or call [REDACTED:phone] about HAT136 on 2024-05-20.'
    """
    text = redact_custom(text, custom_patterns)
    while True:
        before = text
        for rule in _RULES:
            if any(hint in text for hint in rule.hints):
                text = rule.pattern.sub(rule.replacement, text)
        if text == before:
            return text


class _Rule(NamedTuple):
    hints: tuple[str, ...]
    """The pattern is only tried if the text contains one of these hints: most texts contain none, and `in` is fast."""
    pattern: re.Pattern[str]
    replacement: _Replacement


def _token(kind: str) -> str:
    return f"[REDACTED:{kind}]"


def _phone_if_possible(match: re.Match[str]) -> str:
    """Redacts the longest valid number at the start of a match such as `+82 10 1234 5678 2024`.

    If no prefix is a valid number, the longest prefix with a possible length for its country is redacted.
    """
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
    # `is_possible_number` also accepts numbers that can only be dialled within a city.
    possible = phonenumbers.is_possible_number_with_reason(number) == phonenumbers.ValidationResult.IS_POSSIBLE
    return bool(possible)


def _phone_if_assigned(match: re.Match[str]) -> str:
    """Redacts groups of digits separated by spaces or dots, only if Korea or North America has assigned the number."""
    number = phonenumbers.parse(match[0], "KR" if match[0].startswith("0") else "US")
    return _token("phone") if phonenumbers.is_valid_number(number) else match[0]


def _phone_but_no_uuid(match: re.Match[str]) -> str:
    """Redacts a number, and keeps a UUID such as `3f2a1010-4068-4295-9319-5d0c6f1b2a77`, which contains a number.

    The pattern matches UUIDs before numbers. Checking the text before a number does not work instead: people write
    `HP010-1234-5678`, and a part of a UUID can be between hyphens.
    """
    return match["uuid"] or _token("phone")


def _with_redacted_keys(document: dict[str, JsonValue], custom_patterns: Mapping[str, str]) -> dict[str, JsonValue]:
    redacted_keys = {key: redact_text(key, custom_patterns) for key in document}
    used = {key for key, redacted in redacted_keys.items() if key == redacted}
    if len(used) == len(redacted_keys):
        return document.copy()
    copy: dict[str, JsonValue] = {}
    for key, value in document.items():
        new_key, number = redacted_keys[key], 1
        while key != new_key and new_key in used:
            number += 1
            new_key = f"{redacted_keys[key]}#{number}"
        used.add(new_key)
        copy[new_key] = value
    return copy


_NAMES_OF_SECRETS = (
    r"(?:passwords?|passwd|pwd|passphrase|secret|token|(?:api|access|private|secret)[_-]?key|api[_-]?secret"
    r"|비밀번호|비번|암호)"
)
_SECRET_KEY = re.compile(rf"{_NAMES_OF_SECRETS}$", re.IGNORECASE)
_QUOTE = r"\\{0,7}['\"]"  # the quotes of JSON within a text are escaped once or several times
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


# Rules for secrets come first: `password=kim@example.com` is a password.
# A rule restricts the text before a match only where no other match can end. Otherwise the replacement of a match
# would make the next match possible, and a text with n such neighbours would be searched n times.
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
    # The pattern requires a digit, so that hyphenated words ("sk-learn-compatible-estimators") stay.
    _rule("sk-", "api_key", r"(?<![\w-])sk-(?=[a-zA-Z_-]*\d)[\w-]{16,}"),
    _rule("gh|github_pat_", "api_key", r"gh[a-z]_[A-Za-z0-9]{36,}", r"github_pat_\w{22,}"),
    _rule("AKIA|ASIA", "api_key", r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    _rule("kp_", "api_key", r"kp_[A-Za-z0-9]{16,}"),
    _rule("xox", "api_key", r"(?<![A-Za-z0-9-])xox[a-z]-[A-Za-z0-9-]{8,}"),
    _rule(
        "=|:",
        lambda match: f"{match[1]}{match['quote'] or ''}{_token('password')}",
        rf"({_NAMES_OF_SECRETS}(?:{_QUOTE})?\s*[=:]\s*)(?:"
        # Up to the quote that opened the value, unless that quote is escaped once more.
        rf"(?P<quote>{_QUOTE}){_NOT_YET}(?:(?!(?<!\\)(?P=quote))[^\n])+"
        rf"|(?!{_QUOTE}){_NOT_YET}[^\s'\"`,;)}}\[\]]{{2,}})",
        flags=re.IGNORECASE,
    ),
    _rule("@", "email", r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]+\.[A-Za-z]{2,}(?![A-Za-z0-9-])"),
    _rule("+", _phone_if_possible, r"(?<!\+)\+[1-9][\d ().-]{5,22}\d(?!\d)"),
    _rule(  # Korean; without groups only mobile numbers are recognised
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
