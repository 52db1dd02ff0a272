"""Scoring without Kafka: a file's documents or a pandas DataFrame, with the same code that a worker runs.

It knows formats, scoring and stages, and no Kafka. Begin with `score_documents`; in a notebook, with
`dataframe.score_frame`.
"""
