"""Counts what a process has asked judges so far, and what it was billed."""

from __future__ import annotations

from traceweir.schemas.figures import counted
from traceweir.streams.scoring.judges.models import Spent


class RunningBill:
    """The questions that were sent, with their tokens and their price.

    >>> bill = RunningBill()
    >>> bill.add_question("openai/a", has_price=True)
    >>> bill.add(Spent(900, 100, 0.0125))
    >>> bill.text()
    '1 question, 1,000 tokens, 0.0125 USD'
    >>> bill.add_question("openai/own", has_price=False)
    >>> bill.text()
    '2 questions, 1,000 tokens, 0.0125 USD without openai/own, whose price is unknown'
    """

    def __init__(self) -> None:
        self._questions = 0
        self._spent = Spent()
        self._without_price: dict[str, None] = {}

    def add_question(self, model: str, *, has_price: bool) -> None:
        """Counts a question that is sent; `model` is shown."""
        self._questions += 1
        if not has_price:
            self._without_price[model] = None

    def add(self, spent: Spent) -> None:
        """Adds what an attempt has used."""
        self._spent += spent

    def text(self) -> str:
        """Returns the counts as a phrase; empty before the first question."""
        if not self._questions:
            return ""
        tokens = self._spent.input_tokens + self._spent.output_tokens
        unknown = ", ".join(self._without_price)
        without = f" without {unknown}, whose price is unknown" if unknown else ""
        return f"{counted(self._questions, 'question')}, {tokens:,} tokens, {self._spent.usd:.4f} USD{without}"
