"""Scores the documents of a file or a pandas DataFrame without Kafka, with the same code that a worker runs.

This package uses formats, scoring and stages, but not Kafka. Begin with `score_documents`; in a notebook, with
`dataframe.score_frame`.
"""
