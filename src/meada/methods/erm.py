"""ERM (Vapnik, 1998): the mean loss on the source, and nothing else. AGG is ERM on all sources."""

from meada.methods.method import Method


def erm() -> Method:
    return Method(title="ERM", about="Plain training: minimise the mean loss on the source images.")
