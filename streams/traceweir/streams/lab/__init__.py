"""Experiments: eval sets, comparisons of scores, shadows, which score past sessions again, and judges on known cases.

May know `tools` and what they know. Begin with `evals.evaluate`, `comparison.compare` or `shadow.run`.
"""
