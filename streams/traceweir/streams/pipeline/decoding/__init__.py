"""Decodes the values of records for the stages: valid documents fast, and what connectors put around a document.

Begin with `fast_decode`. A value that it leaves goes to pydantic; `envelopes` describes a value that is no document.
"""
