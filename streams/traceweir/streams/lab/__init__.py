"""Experiments: eval sets, comparisons of scores, and shadows, which score past sessions with another config.

May know `tools` and what they know. Begin with `evals.evaluate`, `comparison.compare` or `shadow.run`.
"""
