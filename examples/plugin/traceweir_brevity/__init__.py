"""A Traceweir scorer in a package of its own: how short an answer is."""

from traceweir.scorers import Measurement, Scorer, Subject


class Brevity(Scorer):
    """An answer is better the shorter it is: 1 up to `max_words` words, and less beyond."""

    max_words: int = 50

    def score(self, subject: Subject) -> Measurement:
        words = len(subject.response.split())
        return Measurement(value=min(1.0, self.max_words / max(words, 1)), rationale=f"{words} words")
