"""Intervals and tests, for comparisons and for the dashboard. Takes numbers, and knows no score and no record.

The only user of SciPy, which is imported when something is computed: the import takes a second, and neither a worker nor
a scoring process needs it. Begin with `intervals`, which allows for several results of one session.
"""
