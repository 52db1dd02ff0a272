"""The command line `traceweir`: one module for each command, and a folder where a command has several modules.

May know every other wing, and nothing knows it. Only this wing imports Typer and Rich; the functions that it calls do not
depend on them. Begin with `main`, which registers every command; `commands` is the first module of a folder.
"""
