"""English verbs to infinitives, as one thing: this module is its only door.

It knows nothing but text. `known` looks a word up, `with_infinitives` rewrites a sentence; the variants `_as_mastra` give what
compromise 14 gives, and lie in modules of their own because they reproduce another program.
"""

from traceweir.scorers.text.verbs.infinitives import with_infinitives
from traceweir.scorers.text.verbs.infinitives_as_mastra import with_infinitives_as_mastra
from traceweir.scorers.text.verbs.lexicon import Token, Word, known, known_as_mastra

__all__ = ["Token", "Word", "known", "known_as_mastra", "with_infinitives", "with_infinitives_as_mastra"]
