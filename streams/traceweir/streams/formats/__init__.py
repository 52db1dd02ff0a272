"""Import path of users: what a package needs that offers an input format. Nothing in Traceweir imports it."""
