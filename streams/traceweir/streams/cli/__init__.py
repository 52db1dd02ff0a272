"""The command line `traceweir`: one module for each command, and what they print.

Only this package knows Typer; everything that it calls can be called without it. Begin with `main`, which declares
every command.
"""
