"""Checks the text of a final response: what it contains, and how long it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from traceweir.schemas.normal_form import normal_form
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject, invocation_of, require_read
from traceweir.scorers.databricks_names import reason_with_unread
from traceweir.scorers.text.messages import shown
from traceweir.scorers.text.patterns import compiled

Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=1_000)]


def _usable(pattern: str) -> str:
    if compiled(pattern).search(""):
        raise ValueError("the pattern matches the empty text, so that a match says nothing")
    return pattern


def final_response_of(subject: Subject) -> str:
    """Returns the text of the final response.

    Raises:
        MissingInput: the invocation has no final response, or its source did not record it.
    """
    text = subject.response
    if not text:
        raise MissingInput(reason_with_unread(invocation_of(subject), "there is no final response"))
    return text


class _Texts(Scorer):
    default_threshold: ClassVar[float | None] = 1.0

    texts: Texts
    """The texts, each of 1 to 10,000 characters."""
    ignore_case: bool = False
    """Whether upper and lower case are equal."""

    def _found(self, subject: Subject) -> list[str]:
        response = self._folded(final_response_of(subject))
        return [text for text in self.texts if self._folded(text) in response]

    def _folded(self, text: str) -> str:
        return normal_form("NFC", text.casefold() if self.ignore_case else text)


class ResponseContains(_Texts):
    """Returns the share of the texts in `texts` that the final response contains, from 0 to 1.

    Equal characters in different Unicode forms are equal (NFC). A session's value is the mean of its invocations. An
    invocation without a final response has no value; the criterion `answered` finds it.
    """

    def score(self, subject: Subject) -> Measurement:
        """Looks for each text."""
        found = self._found(subject)
        missing = [text for text in self.texts if text not in found]
        return _share(len(found), len(self.texts), "are in the response", {"missing": missing})


class ResponseExcludes(_Texts):
    """Returns the share of the texts in `texts` that the final response does not contain, from 0 to 1.

    Equal characters in different Unicode forms are equal (NFC). A session's value is the mean of its invocations. An
    invocation without a final response has no value.
    """

    def score(self, subject: Subject) -> Measurement:
        """Looks for each text."""
        found = self._found(subject)
        return _share(len(self.texts) - len(found), len(self.texts), "are absent from the response", {"found": found})


class ResponseMatches(Scorer):
    """Returns 1 if the final response has a part that matches the regular expression `pattern`, else 0.

    The pattern is in RE2's syntax; `^` and `$` are the ends of the response, and `(?s)`, `(?i)` and `(?m)` set flags. A
    session's value is the mean of its invocations. An invocation without a final response has no value.

    >>> ResponseMatches(pattern="[A-Z]{3}[0-9]{3}").pattern
    '[A-Z]{3}[0-9]{3}'
    """

    default_threshold: ClassVar[float | None] = 1.0

    pattern: Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_usable)]
    """The regular expression."""

    def score(self, subject: Subject) -> Measurement:
        """Searches the response."""
        match = compiled(normal_form("NFC", self.pattern)).search(normal_form("NFC", final_response_of(subject)))
        rationale = f"the pattern matches {printable(match.group(), 100)!r}" if match else "the pattern matches nothing"
        return Measurement(value=float(match is not None), rationale=rationale)


class ResponseLength(Scorer):
    """Returns 1 if the final response has at least `min_chars` and at most `max_chars` characters, else 0.

    Characters are those of Unicode in its composed form (NFC). A session's value is the mean of its invocations. An
    invocation without a final response has no value.

    Raises:
        ValueError: neither limit is given, or the least is above the greatest.
    """

    default_threshold: ClassVar[float | None] = 1.0

    min_chars: Annotated[int, Field(ge=0)] | None = None
    """The least number of characters; None: no limit."""
    max_chars: Annotated[int, Field(ge=1)] | None = None
    """The greatest number of characters; None: no limit."""

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.min_chars is None and self.max_chars is None:
            raise ValueError("min_chars or max_chars must be given")
        if self.min_chars is not None and self.max_chars is not None and self.min_chars > self.max_chars:
            raise ValueError(f"min_chars ({self.min_chars}) must not be above max_chars ({self.max_chars})")
        return self

    def score(self, subject: Subject) -> Measurement:
        """Counts the characters."""
        count = len(normal_form("NFC", final_response_of(subject)))
        long_enough = self.min_chars is None or count >= self.min_chars
        short_enough = self.max_chars is None or count <= self.max_chars
        limits = f"{self.min_chars or 0} to {'any number' if self.max_chars is None else self.max_chars}"
        return Measurement(
            value=float(long_enough and short_enough), rationale=f"{count} characters; allowed are {limits}"
        )


class QuestionAnswered(Scorer):
    """Returns 1 if the question of the user has an answer with text, else 0.

    A session's value is the share of its questions that have an answer. An invocation without a question has no value.
    """

    default_threshold: ClassVar[float | None] = 1.0

    def score(self, subject: Subject) -> Measurement:
        """Looks for the question and the answer."""
        invocation = invocation_of(subject)
        question = invocation.user_content
        if question is None:
            require_read(invocation, "question")
        if question is None or not question.parts:
            raise MissingInput(reason_with_unread(invocation, "there is no question"))
        is_answered = bool(subject.response.strip())
        if not is_answered:
            require_read(invocation, "answer")
        reason = "the question has an answer" if is_answered else "the question has no answer"
        if not is_answered and invocation.error:
            reason += f"; the invocation failed: {printable(invocation.error, 300)}"
        return Measurement(value=float(is_answered), rationale=reason)


def _share(count: int, of: int, verb: str, rest: dict[str, Sequence[str]]) -> Measurement:
    return Measurement(
        value=count / of,
        rationale=f"{count} of {of} texts {verb}",
        details={name: shown(texts) for name, texts in rest.items() if texts},
    )
