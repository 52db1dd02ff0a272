"""Judges frozen sessions with labels of people again and again, to find changes of judges. Begin with `running`."""
