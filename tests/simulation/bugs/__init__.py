"""Bugs that are put into the worker, to show that the simulation finds them. Each is a patch of the product's code.

A bug is a function that changes a class or a module of this Python process; a simulation runs in a process of its own.
"""
