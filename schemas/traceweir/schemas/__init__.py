"""Shapes of everything that Traceweir reads and writes."""
