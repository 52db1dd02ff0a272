"""Compares two sets of scores: pairs, differences with intervals, flips, and bounds. Knows no Kafka and no command line.

`traceweir diff` is the user of this package. SciPy is imported when `compare` computes, because the import takes a
second.
"""
