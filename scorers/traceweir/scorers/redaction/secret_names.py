"""Tells which names (of JSON keys, variables, headers) hold a secret, and which values under them are none."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from traceweir.scorers.redaction.entropy import has_digit, is_jumbled, is_wordy, shannon_entropy
from traceweir.scorers.redaction.plain_text import plain_name

_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ROLES = ("password", "secret", "cookie", "address", "session")
FOREIGN_NAMES = (
    "비밀번호|비번|암호|패스워드|パスワード|暗証番号|密码|密碼|口令|пароль|κωδικός|contraseña|hasło|lösenord|şifre|jelszó|mật khẩu"
    "|סיסמה|סיסמא|كلمة المرور|كلمة السر|पासवर्ड|รหัสผ่าน"
)
"""Names of passwords that are not written in ASCII, for a pattern that ignores case."""
_FOREIGN = re.compile(rf"(?:{FOREIGN_NAMES})$", re.IGNORECASE)
_NUMBERED = re.compile(r"(?<=[A-Za-z])[_-]?\d{1,3}$")
_MIN_MADE_UP_BITS = 2.5
_RANDOM_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_HEX_RUN = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_VERSION = re.compile(r"(?<![0-9a-z])v(?=\d)")
_PIECE = re.compile(r"[A-Za-z]\d{1,4}")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z0-9]")
_MIN_WORD = 3
_MAX_SHORT_NUMBER = 4
_LETTERS_WITHOUT_SPACES = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_COUNTED = re.compile(rf"[{_LETTERS_WITHOUT_SPACES}]\d|\d[{_LETTERS_WITHOUT_SPACES}]")
"""A number of something in a sentence of Thai, Japanese, Chinese or Korean: `8位`."""
_ASCII_RUN = re.compile(r"[!-~]+")
_NAMED_NUMBER = re.compile(r"v?\d+[.-].*|[A-Z]{1,4}-?\d{1,5}|\d+[-_]?[A-Za-z가-힣]+")
_MAX_NAME = 80

_TEMPLATES = re.compile(
    r"(?:[A-Za-z]+ )?(?:<.*>?|\$[A-Za-z_{(].*|%[({].*|\{\{?.*|\[.*|\*+.*|[A-Z]\w*\[.*\]|!(?:vault|secret|ref|env|sub|getatt)\b.*)",
    re.IGNORECASE,
)
"""`<your-key>`, `${KEY}`, `{{ key }}`, `[hidden]`, `!vault`."""
_CODE = re.compile(
    r"(?:os|process|settings|config|env|self|args|request|response|secrets|ctx|vars|var|data|local|module)[.\[(].*"
    # A call or an index.
    r"|[A-Za-z_][\w.]*(?:\(|\[).*|&[\w.]+"
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
_WITHOUT_SCHEME = re.compile(r"^(?:bearer|basic|token|apikey)\s+", re.IGNORECASE)
_SECRET_PART = re.compile(
    r"(?:^|[;?&\s])(?:password|passwd|pwd|pass|[a-z]{0,24}(?:key|secret|token)|sig)\s{0,3}=\s{0,3}[^\s;&]",
    re.IGNORECASE,
)
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
    """Returns what a name holds: `password`, `token`, `secret`, `key`, `cookie`, `address`, `session`, `short`, or nothing.

    The last words of the name decide, compared as whole words: `DB_PASSWORD`, `clientSecret` and `x-api-key` name secrets,
    `password_changed_at`, `max_tokens`, `next_token` and `secretary` do not. A number at the end does not count.

    >>> [secret_role(name) for name in ("DB_PASSWORD", "x-api-key", "next_token", "tokens", "Set-Cookie", "DATABASE_URL")]
    ['password', 'secret', '', '', 'cookie', 'address']
    """
    name = plain_name(name[-_MAX_NAME:])
    if _FOREIGN.search(name):
        return "password"
    role = _role_of(name)
    return role or _role_of(_NUMBERED.sub("", name))


def _role_of(name: str) -> str:
    words = [word.lower() for word in _SPLIT.findall(name)]
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
        return "password" if words[-1] in {"pass", "pw"} else "secret"
    if len(words) == 1 and words[0] in known["short"]:
        return "short"
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


def is_address_with_secret(value: str) -> bool:
    """Returns whether an address or a connection string contains a password or a token, or is one.

    >>> addresses = "postgres://app:pw@db/x", "postgres://app@db/x", "redis://s3cretpw@cache", "host=db;Pwd=x", "hunter2"
    >>> [is_address_with_secret(address) for address in addresses]
    [True, False, True, True, True]
    """
    if _SECRET_PART.search(value) is not None:
        return True
    _, scheme, rest = value.partition("://")
    user, at, _ = (rest if scheme else value).rpartition("@")
    if at:
        return ":" in user or "/" in user or _has_random_part(user) or is_made_up(user)
    if scheme:
        return _has_random_part(rest.partition("/")[2])
    is_name = any(mark in value for mark in "./:\\,;$=")
    return not is_placeholder(value) and (_has_random_part(value) or (not is_name and is_made_up(value)))


def is_made_up(value: str) -> bool:
    """Returns whether a text looks like a secret without a name that says so.

    >>> [is_made_up(value) for value in ("hunter2", "yesterday", "v2.1-beta", "PR-12", "f(x1)")]
    [True, False, False, False, False]
    """
    return (
        len(value) >= 6
        and has_digit(value)
        and any(map(str.isalpha, value))
        and not any(mark in value.rstrip("=") for mark in "=(){}<>[]$")
        and not is_placeholder(value)
        and not is_wordy(value)
        and _NAMED_NUMBER.fullmatch(value) is None
        and _UUID.fullmatch(value) is None
        and shannon_entropy(value) >= _MIN_MADE_UP_BITS
    )


def _is_name(value: str) -> bool:
    """Returns whether a value consists of words and short numbers, with at least two of its parts apart.

    >>> [_is_name(value) for value in ("scram-sha-256", "TestHTTP2Server", "PEAP-MSCHAPv2", "x509-cert", "hunter2", "k8Jd02")]
    [True, True, True, True, False, False]
    """
    pieces = [piece for piece in re.split("[-_ ]+", _VERSION.sub("-", value)) if piece]
    parts = [part for piece in pieces if not _PIECE.fullmatch(piece) for part in _PARTS.findall(piece)]
    words = [part for part in parts if part.isalpha()]
    return (
        (len(pieces) > 1 or len(words) > 1)
        and words != []
        and all(part.isdigit() and len(part) <= _MAX_SHORT_NUMBER for part in parts if part not in words)
        and all(len(word) >= _MIN_WORD for word in words)
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
        return is_address_with_secret(value)
    if role == "key":
        return _has_random_part(value) and not is_wordy(value) and not is_placeholder(value)
    if not any(map(str.isalnum, value)) or is_placeholder(value):
        return False
    if role == "short":
        value = _WITHOUT_SCHEME.sub("", value)
        return is_made_up(value) and "/" not in value and "." not in value and not _is_name(value)
    if role == "session":
        return any(
            has_digit(run) and shannon_entropy(run) >= _MIN_KEY_BITS and (is_jumbled(run) or _HEX_RUN.fullmatch(run))
            for run in _RANDOM_RUN.findall(value)
        )
    if not quoted and _COUNTED.search(value) and not any(map(is_made_up, _ASCII_RUN.findall(value))):
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
    if not value.isascii() and all(unicodedata.category(each)[0] in "LM" or each.isspace() for each in value):
        return quoted or tight
    return quoted or len(value) >= 4
