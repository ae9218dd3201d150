"""`trellis demo`."""


class DemoFailed(RuntimeError):
    """x"""


def demo() -> None:
    """x"""
