"""Makes text safe for log lines, messages, terminals and shells."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 @%+=:,./_-]")


def printable(text: str, limit: int = 500) -> str:
    """Returns text that is safe in a log line: control and invisible characters are escaped.

    The result has at most `limit` characters; truncated text ends in an ellipsis.

    >>> printable("one\\ntwo")
    'one\\\\ntwo'
    """
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def listed(texts: Sequence[str], limit: int = 300, *, most: int = 5, separator: str = "; ", what: str = "") -> str:
    """Returns the first texts and the number of the others; each is safe in a log line, as `printable` says.

    Args:
        texts: The texts.
        limit: The most characters of each.
        most: How many texts are shown.
        separator: What stands between two of them.
        what: What the texts are, for the number of the others.

    >>> listed(["a", "b\\n", "c", "d", "e", "f", "g"])
    'a; b\\\\n; c; d; e; and 2 more'
    """
    more = [f"and {len(texts) - most} more {what}".rstrip()] if len(texts) > most else []
    return separator.join([*(printable(text, limit) for text in texts[:most]), *more])


def shell_command(*words: str) -> str | None:
    """Returns a command to show and to paste: printable, on one line, with every word whole and as one word of the shell.

    A word with a control or invisible character is written with escapes (`$'...'`), which bash, zsh and ksh read: a
    terminal obeys such a character in a pasted text although it is quoted. None if a word contains the character NUL,
    which no command line can pass.

    >>> print(shell_command("ls", "a 'b'", "two" + chr(10) + "lines"))
    ls 'a '"'"'b'"'"'' $'two\\012lines'
    >>> shell_command("ls", chr(0)) is None
    True
    """
    return None if any("\0" in word for word in words) else " ".join(map(_shell_word, words))


def _shell_word(text: str) -> str:
    if not text.isprintable():
        # Octal digits of bytes mean the same in each of these shells and in each locale.
        return "$'" + _NOT_PLAIN.sub(lambda found: "".join(f"\\{byte:03o}" for byte in found[0].encode()), text) + "'"
    quoted = shlex.quote(text)
    # zsh reads =ls as the path of the program ls.
    return f"'{quoted}'" if quoted.startswith("=") else quoted
