"""Import path of users: rows of tables and parsers of their cells, which live in `intake.formats.tables`."""

from traceweir.streams.intake.formats.tables import Row, json_or_text, number, text

__all__ = ["Row", "json_or_text", "number", "text"]
