"""Which parameters of OpenAI's interface are passed on, which change nothing, and which are refused. None is dropped unsaid."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from app.errors import Invalid


class UnsupportedParameter(Invalid):
    """The parameter would change the meaning of the answer, and cannot be honoured here; `param` names it."""

    code = "unsupported_parameter"
    title = "A parameter is not supported"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


# What clients send as a matter of course, as long as its value asks for nothing. `null` asks for nothing anywhere.
ASKS_NOTHING: Final[Mapping[str, Callable[[Any], bool]]] = {
    "n": lambda value: value == 1 and not isinstance(value, bool),
    "logprobs": lambda value: value is False,
    "top_logprobs": lambda value: value == 0 and not isinstance(value, bool),
    "logit_bias": lambda value: value == {},
    "tools": lambda value: value == [],
    "functions": lambda value: value == [],
    "tool_choice": lambda value: value in ("none", "auto"),
    "function_call": lambda value: value in ("none", "auto"),
    "parallel_tool_calls": lambda value: isinstance(value, bool),
    "response_format": lambda value: value == {"type": "text"},
    "modalities": lambda value: value == ["text"],
    "store": lambda value: value is False,
    "service_tier": lambda value: value in ("auto", "default"),
    # Names of the client's own; they are neither kept nor passed on.
    "user": _is_text,
    "safety_identifier": _is_text,
    "prompt_cache_key": _is_text,
    "metadata": lambda value: isinstance(value, dict),
}
# In messages, as the SDK hands back what a model has said.
OF_MESSAGES: Final = frozenset({"role", "content"})


def refuse_parameters(given: Mapping[str, Any]) -> None:
    """`given` is what the request holds beyond the fields that are used. Raises UnsupportedParameter."""
    for name, value in given.items():
        if value is None:
            continue
        if name not in ASKS_NOTHING:
            raise UnsupportedParameter(f"The parameter {name[:100]!r} is not supported here.", param=name[:100])
        if not ASKS_NOTHING[name](value):
            raise UnsupportedParameter(f"The parameter {name!r} is not supported with this value.", param=name)


def refuse_message_fields(given: Mapping[str, Any], place: str) -> None:
    """Tool calls, names and audio of a message; what is null or empty says nothing. Raises UnsupportedParameter."""
    for name, value in given.items():
        if name not in OF_MESSAGES and value not in (None, [], {}, ""):
            raise UnsupportedParameter(
                f"Messages have a role and a content here; {name[:100]!r} is not supported.",
                param=f"{place}.{name[:100]}",
            )
