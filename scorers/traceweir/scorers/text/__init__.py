"""What metrics do with text: words in any script, stems, coverage, ROUGE.

It knows nothing but schemas' normal form of text. Begin with `segments`, which finds the words of a text, or with
`rouge`.
"""
