"""How often a process that answers looks for objects that only refer to each other."""

import gc
from typing import Final

COLLECT_AFTER: Final = 50_000


def calm_collector() -> None:
    """Call it once all is loaded: what is there by then, a million objects, is not looked through again, and what comes later
    not for each few hundred objects that a request makes. Looking through all of it stops a process for a third of a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
