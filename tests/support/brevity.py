"""The plugin of docs and CONTRIBUTING: a scorer in ten lines."""

from traceweir.scorers import Measurement, Scorer, Subject


class Brevity(Scorer):
    """An answer is better the shorter it is: 1 up to `max_words` words, and less beyond."""

    max_words: int = 50

    def score(self, subject: Subject) -> Measurement:
        words = len(subject.response.split())
        return Measurement(value=min(1.0, self.max_words / max(words, 1)), rationale=f"{words} words")
