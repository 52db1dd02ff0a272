"""A scorer for Traceweir that measures how short an answer is, in a package of its own."""

from traceweir.scorers import Measurement, Scorer, Subject


class Brevity(Scorer):
    """Brevity of the answer: 1 up to `max_words` words; for longer answers, `max_words` divided by their words."""

    max_words: int = 50

    def score(self, subject: Subject) -> Measurement:
        words = len(subject.response.split())
        return Measurement(value=min(1.0, self.max_words / max(words, 1)), rationale=f"{words} words")
