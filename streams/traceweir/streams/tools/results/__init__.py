"""Reads the scores on the topic `results`, and writes them as a table.

The command line `traceweir results` is the user of this package.
"""
