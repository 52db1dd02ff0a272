"""Contains the text processing of the metrics: words in any script, stems, coverage and ROUGE.

The package depends only on the schemas and the scorer contract. Start reading with `segments`, which finds the words
of a text, or with `rouge`.
"""
