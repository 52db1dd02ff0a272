"""Shapes of everything that Tracegate reads and writes."""
