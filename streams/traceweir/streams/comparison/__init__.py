"""Compares two sets of scores: pairs, differences with intervals, flips, and bounds. Knows no Kafka and no command line.

`traceweir diff` is the user of this package. It needs the [diff] extra, which `compare` imports when it computes.
"""
