"""Puts a secret tag into the marks around the data of a prompt, and takes it out of the answers.

The tag is the same for all prompts of a deployment, so that equal beginnings of prompts stay equal, and providers read
them from their caches. The secret is a key, and nobody who writes a text that is judged can know the tag.
"""

from __future__ import annotations

import hmac
import os
import re
from dataclasses import dataclass
from itertools import count
from secrets import token_bytes

from traceweir.scorers.judge import Question

CHARACTERS = 16
_SHORTEST_API_KEY = 20
_PLACEHOLDER = re.compile(
    r"no[-_ ]?key|not[-_ ]?(?:needed|required|used)|your[-_ ]|dummy|placeholder|fake|example|change[-_ ]?me|1234567|abcdefg|x{8}",
    re.IGNORECASE,
)
_OF_PROCESS = 32


@dataclass(frozen=True, slots=True)
class TaggedPrompt:
    """A prompt as it is sent."""

    stable: str
    """What is equal for all sessions of an agent; can be empty."""
    session: str
    public: str
    """The tag of the question, which is not secret; empty: the prompt has no marks."""
    tag: str
    """The tag in this prompt."""

    def masked(self, text: str) -> str:
        """Returns an answer, or an error message, with the public tag in place of the secret one."""
        return re.sub(re.escape(self.tag), self.public, text, flags=re.IGNORECASE) if self.tag else text


class SecretTags:
    """Makes the tags from a key.

    Args:
        key: The setting, or a usable key of the API; None: the key of each provider in the environment. A provider without a
            key, such as a local server, gets a key that lives as long as this object: a constant would be public, and a
            file would not be shared by workers on several machines.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._random = token_bytes(_OF_PROCESS)

    def tagged(self, question: Question, provider: str) -> TaggedPrompt:
        """Returns the prompt of a question for a provider."""
        stable = question.prompt[: question.stable_characters]
        session = question.prompt[question.stable_characters :]
        if not question.tag:
            return TaggedPrompt(stable, session, "", "")
        key = self._key or usable_key(os.environ.get(f"{provider.upper()}_API_KEY"))
        tag = secret_tag(question.prompt, key.encode() if key else self._random)
        return TaggedPrompt(stable.replace(question.tag, tag), session.replace(question.tag, tag), question.tag, tag)


def usable_key(api_key: str | None) -> str | None:
    """Returns an API key if nobody can guess it; None for a short one, and for what is written where no key is needed.

    Who guesses the key can compute the tag, and so end the block of a text.

    >>> [usable_key(each) for each in ("EMPTY", "ollama", "sk-no-key-required-here", "x" * 40, None)]
    [None, None, None, None, None]
    >>> usable_key("gT7pQ2vLx9ZkR4mWc1Ha")
    'gT7pQ2vLx9ZkR4mWc1Ha'
    """
    if api_key is None or len(api_key) < _SHORTEST_API_KEY:
        return None
    return None if _PLACEHOLDER.search(api_key) else api_key


def secret_tag(prompt: str, key: bytes) -> str:
    """Returns the tag of a key, in hexadecimal digits; if it occurs in the prompt, one of the key and the prompt.

    >>> tag = secret_tag("Is it so?", b"key")
    >>> tag == secret_tag("Is it otherwise?", b"key"), tag == secret_tag(f"Is it {tag.upper()}?", b"key")
    (True, False)
    """
    # A model does not tell upper from lower case as strictly as a program.
    text = prompt.casefold()
    tag = _digits(key, "tag of prompts")
    for number in count():
        if tag not in text:
            break
        tag = _digits(key, f"{number} {prompt}")
    return tag


def _digits(key: bytes, message: str) -> str:
    return hmac.digest(key, message.encode("utf-8", "surrogatepass"), "sha256").hex()[:CHARACTERS]
