"""The corpus of redaction: kinds of secrets, the forms in which they occur, innocent texts, and the measurement."""
