"""Commands by the panel of `traceweir --help` in which they stand: their options, help texts and checks of options.

The work is in modules that a command imports when it runs, so that the help starts quickly.
"""
