"""Reproduces what compromise 14, an English tagger in JavaScript, does with verbs, for `compat: "mastra"`.

The rest of the product reaches it through `traceweir.scorers.text.verbs`. The data in `words` are no code of compromise
but what it answered; `words/SOURCE.md` says how they are recorded again.
"""
