"""The command line `traceweir`: one module for each command, and modules for the output.

Only this package imports Typer; the functions that it calls do not depend on Typer. Begin with `main`, which declares
every command.
"""
