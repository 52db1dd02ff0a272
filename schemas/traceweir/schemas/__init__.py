"""Defines the schemas of everything that Traceweir reads and writes."""
