"""From the name of a mode to the engine that answers it; never from one mode to another."""

from collections.abc import Mapping, Sequence

from app.retrieval.contract import MODES, Engine, EngineOff, Search, UnknownMode
from app.retrieval.routing import AUTO


class SearchRegistry:
    """The searches of this process, by engine; a mode may have one of its own."""

    def __init__(self, searches: Mapping[Engine, Search], by_mode: Mapping[str, Search] | None = None) -> None:
        self._searches = searches
        self._by_mode = by_mode or {}

    def search_for(self, mode: str, engines: Sequence[str]) -> Search:
        """The search for `mode` in a workspace that has these engines.

        Raises `UnknownMode` (with `modes`) or `EngineOff` (with `engine`): a silent fallback would give a confident
        answer from the wrong evidence.
        """
        engine = MODES.get(mode)
        if engine is None:
            known = [*MODES, AUTO]
            raise UnknownMode(f"There is no mode '{mode}'; there are {', '.join(known)}.", mode=mode, modes=known)
        if engine not in engines:
            raise EngineOff(
                f"Mode '{mode}' needs the engine '{engine}', which this workspace does not have.",
                engine=engine,
                mode=mode,
            )
        return self._by_mode.get(mode) or self._searches[engine]
