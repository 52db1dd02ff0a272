"""What comes in: input formats of files, OTLP, and what agents did, read from their spans.

May know `base`. Makes the records that an agent would have sent, and neither scores nor sends them. Begin with
`formats.base`, the interface of an input format, or with `spans.reader`, which reads the spans of one trace.
"""
