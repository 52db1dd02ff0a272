"""Input formats of files and DataFrames, and their conversion to traces and events.

This package imports no stage, no Kafka and no command line. Begin with `base`, the interface of a format; each format
is one module and one line in `registry`; `recognition` tells the formats apart, and `files` reads the records of a file.
"""
