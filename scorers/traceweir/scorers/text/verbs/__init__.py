"""Replaces English verbs by their infinitives. Import from this package, not from its modules.

The package processes text only. `look_up` classifies a word, `with_infinitives` rewrites a sentence. The variants
`_as_mastra` reproduce the results of compromise 14, and are in the package `compromise`.
"""

from traceweir.scorers.text.verbs.compromise.infinitives import with_infinitives_as_mastra
from traceweir.scorers.text.verbs.compromise.lexicon import look_up_as_mastra
from traceweir.scorers.text.verbs.infinitives import with_infinitives
from traceweir.scorers.text.verbs.lexicon import Token, Word, look_up

__all__ = ["Token", "Word", "look_up", "look_up_as_mastra", "with_infinitives", "with_infinitives_as_mastra"]
