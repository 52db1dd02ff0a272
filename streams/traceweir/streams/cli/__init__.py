"""The command line `traceweir`: one module for the work of each command, and a folder where it has several modules.

May know every other wing, and nothing knows it. Only this wing imports Typer and Rich; the functions that it calls do not
depend on them. Begin with `main`, which registers every command. `declared` has what a command of one
module takes; `commands` is the first module of a folder.
"""
