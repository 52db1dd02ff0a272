"""Turns text into vectors with a model of the user. Begin with `loading`, which loads the embedder of a setting.

`making` makes faster embedders from a model. The libraries of models are extras, and are imported with the first model.
"""
