"""Tells which names (of JSON keys, variables, headers) hold a secret, and which values under them are none."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from traceweir.scorers.redaction.entropy import has_digit, is_wordy, shannon_entropy

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ROLES = ("password", "secret", "cookie", "address")
_KOREAN = re.compile(r"(?:비밀번호|비번|암호|패스워드)$")
_MAX_NAME = 80

_TEMPLATES = re.compile(
    r"(?:[A-Za-z]+ )?(?:<.*>?|\$[A-Za-z_{(].*|%[({].*|\{\{?.*|\[.*|\*+.*|[A-Z]\w*\[.*\]|!(?:vault|secret|ref|env|sub|getatt)\b.*)",
    re.IGNORECASE,
)
"""`<your-key>`, `${KEY}`, `{{ key }}`, `[hidden]`, `!vault`."""
_CODE = re.compile(
    r"(?:os|process|settings|config|env|self|args|request|response|secrets|ctx|vars|var|data|local|module)[.\[(].*"
    r"|[A-Za-z_][\w.]*(?:\(|\[).*|&[\w.]+"  # a call or an index
)
_EXAMPLE = re.compile(
    r"(?:^|[-_ ./])(?:your|insert|replace|example|placeholder|sample|dummy|redacted|changeme)(?:$|[-_ ./])",
    re.IGNORECASE,
)
_FILLER = re.compile(r"[*•xX.\-_#?0…]+|(.)\1+|.*(?:\.\.\.|\*\*\*)|abc123|12345?6?7?8?9?0?")
_SENTENCE = re.compile(
    r"(?:^|\s)(?:must|be|is|are|was|required|should|please|enter|your|the|at|least|characters?|password|invalid|not|for|to"
    r"|has|have|of|in|on|and|or|see|from)(?:\s|$)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[\d.,:/_-]+")
_HANGUL = re.compile(r"[가-힣\s]+")
_MIN_RANDOM_BITS = 2.2
_MIN_KEY_BITS = 3.0
_RANDOM_PART = re.compile(r"[A-Za-z0-9+_-]{16,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@cache
def _words() -> Mapping[str, frozenset[str]]:
    document = tomllib.loads(files(__package__).joinpath("secret_words.toml").read_text("utf-8"))
    return {name: frozenset(words) for name, words in document.items()}


def _has_random_part(value: str) -> bool:
    return any(
        has_digit(part) and shannon_entropy(part) >= _MIN_KEY_BITS and _UUID.fullmatch(part) is None
        for part in _RANDOM_PART.findall(value)
    )


@lru_cache(maxsize=4_096)
def secret_role(name: str) -> str:
    """Returns what a name holds: `password`, `token`, `secret`, `key`, `cookie`, `address`, or the empty text for no secret.

    The last words of the name decide, compared as whole words: `DB_PASSWORD`, `clientSecret` and `x-api-key` name secrets,
    `password_changed_at`, `max_tokens`, `next_token` and `secretary` do not.

    >>> [secret_role(name) for name in ("DB_PASSWORD", "x-api-key", "next_token", "tokens", "Set-Cookie", "DATABASE_URL")]
    ['password', 'secret', '', '', 'cookie', 'address']
    """
    if _KOREAN.search(name[-_MAX_NAME:]):
        return "password"
    words = [word.lower() for word in _SPLIT.findall(name[-_MAX_NAME:])]
    if not words:
        return ""
    known = _words()
    for count in range(min(4, len(words)), 0, -1):
        tail = "".join(words[-count:])
        if tail in known["token"]:
            return "" if tail == "token" and words[-2:-1] and words[-2] in known["no_secret_before_token"] else "token"
        for role in _ROLES:
            if tail in known[role]:
                return role
    if words[-1] in known["after_another_word"] and (len(words) > 1 or name.startswith("_")):
        return "password" if words[-1] == "pass" else "secret"
    if words[-1].endswith(("password", "passwd", "passphrase")):
        return "password"
    if words[-1] == "key" and len(words) > 1 and words[-2] not in known["no_secret_before_key"]:
        return "key"
    return "secret" if words[-1].endswith(("apikey", "accesskey", "secretkey", "privatekey", "clientsecret")) else ""


def is_placeholder(value: str) -> bool:
    """Returns whether a value stands for a secret that is not there, or for a rule about secrets.

    >>> [is_placeholder(value) for value in ("required", "<your-key>", "${KEY}", "********", "hunter2")]
    [True, True, True, True, False]
    """
    value = value.strip(" \t\r\n()")
    return (
        value.lower().rstrip(".:!") in _words()["placeholder"]
        or _FILLER.fullmatch(value) is not None
        or _TEMPLATES.fullmatch(value) is not None
        or _EXAMPLE.search(value) is not None
        or (" " in value and _SENTENCE.search(value) is not None)
    )


def is_secret_value(role: str, value: str, *, quoted: bool, tight: bool = False) -> bool:
    """Returns whether a value under a name with this role is a secret.

    Args:
        role: The role of the name, from `secret_role`.
        value: The value without quotes.
        quoted: Whether the value is a string of JSON or of code. A word without quotes is usually no secret.
        tight: Whether the value follows an equals sign without spaces, as in `PASSWORD=letmein`.
    """
    if not quoted and _CODE.fullmatch(value):
        return False
    value = value.strip() if quoted else value.strip("() \t\r")
    if role == "address":
        return "@" in value or ";" in value or _has_random_part(value)
    if role == "key":
        return _has_random_part(value) and not is_wordy(value) and not is_placeholder(value)
    if not any(map(str.isalnum, value)) or is_placeholder(value):
        return False
    if role == "cookie":
        return has_digit(value) and len(value) >= 8
    if _NUMBER.fullmatch(value):
        return role == "password" and value.isdigit() and len(value) >= 4
    if len(value) >= 16 and shannon_entropy(value) < _MIN_RANDOM_BITS:
        return False
    if is_wordy(value.rstrip(".!?")):
        if role == "token":
            return " " in value and quoted
        return quoted or (role == "password" and ((tight and "_" not in value) or value.count("-") >= 3))
    if _HANGUL.fullmatch(value):
        return quoted or tight
    return quoted or len(value) >= 4
