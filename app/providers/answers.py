"""Cleans what models answer and tells usable answers from refused, cut off and senseless ones.

A chunk whose answer does not pass is known to be failed, instead of an empty graph that nobody notices.
"""

import json
import re
from typing import Any, Final

import json_repair

from app.providers.contract import ModelCutOff, ModelNonsense, ModelRefused
from app.text.keywords import MAX_HIGH, MAX_LOW, Keywords, extract_keywords

_FIELD: Final = "<|#|>"
_DONE: Final = "<|COMPLETE|>"
# Only at the start: a document may itself speak of <think> tags.
_THOUGHT: Final = re.compile(r"\A\s*(?:<think(?:ing)?>.*?</think(?:ing)?>\s*)+", re.DOTALL)
_OPEN_THOUGHT: Final = re.compile(r"\A\s*<think(?:ing)?>", re.DOTALL)
_UNOPENED_THOUGHT: Final = re.compile(r"\A.*?</think(?:ing)?>\s*", re.DOTALL)
_FENCE_LINE: Final = re.compile(r"^```[\w-]*[ \t]*$\n?", re.MULTILINE)
# LightRAG repairs some broken delimiters itself, so a record only has to look like one.
_RECORD: Final = re.compile(r"^(entity|relation(?:ship)?)\W{0,2}<\|?#\|?>", re.MULTILINE | re.IGNORECASE)
_LIST_MARK: Final = re.compile(
    r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(?=(?:entity|relation(?:ship)?)\W{0,2}<)", re.MULTILINE | re.IGNORECASE
)
_FIELDS: Final = {"entity": 4, "relation": 5, "relationship": 5}
_REFUSAL: Final = re.compile(
    r"(?:i[’']?m (?:really |very )?sorry|i am sorry|sorry,|i (?:can[’']?t|cannot|can not|won[’']?t|am not able|[’']m not able|"
    r"[’']m unable|am unable)|as an ai\b|i must decline|i[’']?d rather not|"
    r"抱歉|很抱歉|对不起|我无法|我不能|作为一个?(?:ai|人工智能)|申し訳|죄송|"
    r"es tut mir leid|ich kann (?:diese|dabei|ihnen|nicht)|je suis désolé|désolé|je ne peux pas|lo siento|no puedo|"
    r"извините|к сожалению, я|я не могу|عذر|آسف|لا أستطيع|لا يمكنني)",
    re.IGNORECASE,
)
_REFUSAL_WITHIN_CHARS: Final = 200


def clean_answer(text: str) -> str:
    """An answer without the model's thoughts and without code fences around what was asked for."""
    text = _THOUGHT.sub("", text.replace("\x00", ""))
    unopened = _UNOPENED_THOUGHT.match(text)
    if (
        unopened
        and not _OPEN_THOUGHT.match(text)
        and not _RECORD.search(unopened.group())
        and "{" not in unopened.group()
    ):
        text = text[unopened.end() :]
    return _FENCE_LINE.sub("", text).strip()


def check_text(text: str, finish_reason: str | None) -> str:
    """A plain answer (a summary), cleaned. Raises `ModelCutOff`, `ModelRefused` or `ModelNonsense` (nothing in it)."""
    cleaned = clean_answer(text)
    _check_end(text, finish_reason)
    if not cleaned:
        raise ModelNonsense("The model's answer is empty.")
    if _is_refusal(cleaned):
        raise ModelRefused("The model refused the task.")
    return cleaned


def check_extraction(text: str, finish_reason: str | None, json_mode: bool) -> str:
    """An extraction in LightRAG's format: records, or one JSON object in JSON mode; given in the other one it is rewritten.

    An extraction that says that there is nothing to extract passes. Raises `ModelCutOff` for one that was not finished,
    `ModelRefused`, or `ModelNonsense` where no record can be found.
    """
    cleaned = _LIST_MARK.sub("", clean_answer(text))
    _check_end(text, finish_reason)
    graph = _read_graph(cleaned)
    has_records = _RECORD.search(cleaned) is not None
    if json_mode:
        if graph is None and has_records:
            graph = _graph_of_records(cleaned)
        if graph is not None:
            return json.dumps(graph, ensure_ascii=False)
    elif has_records or cleaned.strip("`\"' \n") == _DONE:
        _check_last_record(cleaned)
        return _without_prose(cleaned)
    elif graph is not None:
        return _records_of_graph(graph)
    raise _reason(cleaned)


def check_gleaning(text: str, finish_reason: str | None, json_mode: bool) -> str:
    """A second look at a text: as `check_extraction`, but an answer without records only says that nothing was missed."""
    try:
        return check_extraction(text, finish_reason, json_mode)
    except (ModelNonsense, ModelRefused):
        return '{"entities": [], "relationships": []}' if json_mode else _DONE


def check_keywords(text: str, query: str) -> Keywords:
    """The keywords a model found in `query`; the built-in extractor's where it gave none or something else."""
    found = _read_object(clean_answer(text)) or {}
    high = _strings(found.get("high_level_keywords"))[:MAX_HIGH]
    low = _strings(found.get("low_level_keywords"))[:MAX_LOW]
    if high and low:
        return Keywords(high, low)
    built_in = extract_keywords(query)
    return Keywords(high or low or built_in.high, low or high or built_in.low)


def _check_end(text: str, finish_reason: str | None) -> None:
    if finish_reason == "length":
        raise ModelCutOff("The model's answer was cut off at its output limit; use smaller chunks or a higher limit.")
    if _OPEN_THOUGHT.match(text) and "</think" not in text:
        raise ModelCutOff("The model used up its answer for thinking.")


def _without_prose(cleaned: str) -> str:
    """Records from the first to the end mark: LightRAG would log every other line as a broken record."""
    first = _RECORD.search(cleaned)
    start = first.start() if first else 0
    body, mark, _ = cleaned[start:].partition(_DONE)
    return (body + mark).strip("`\"' \n")


def _check_last_record(cleaned: str) -> None:
    """Some servers report a cut off answer as finished: then the last record is broken and the end mark is missing."""
    if _DONE in cleaned:
        return
    last = cleaned.rstrip().rsplit("\n", 1)[-1]
    match = _RECORD.match(last)
    if match and last.count("#") < _FIELDS[match[1].lower()] - 1:
        raise ModelCutOff("The model's answer ends in the middle of a record.")


def _reason(cleaned: str) -> ModelCutOff | ModelRefused | ModelNonsense:
    if not cleaned:
        return ModelNonsense("The model's answer is empty.")
    if _is_refusal(cleaned):
        return ModelRefused("The model refused to extract from this text.")
    if cleaned.startswith(("{", "[")) and not cleaned.endswith(("}", "]")):
        return ModelCutOff("The model's JSON ends in the middle.")
    return ModelNonsense("The model's answer holds no record in the format that was asked for.")


def _is_refusal(cleaned: str) -> bool:
    return _REFUSAL.search(cleaned[:_REFUSAL_WITHIN_CHARS]) is not None


def _read_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text, small slips (trailing commas, single quotes) repaired; None for a text without one."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    body = text[start : end + 1]
    try:
        found = json.loads(body)
    except ValueError:
        if body.count("{") != body.count("}") or body.count("[") != body.count("]"):
            return None  # cut off: a repair would invent the end
        found = json_repair.loads(body)
    return found if isinstance(found, dict) else None


def _read_graph(text: str) -> dict[str, list[dict[str, Any]]] | None:
    found = _read_object(text)
    if found is None or not ("entities" in found or "relationships" in found):
        return None
    graph = {}
    for part in ("entities", "relationships"):
        items = found.get(part) or []
        if not isinstance(items, list):
            return None
        graph[part] = [item for item in items if isinstance(item, dict)]
        if items and not graph[part]:
            return None
    return graph


def _records_of_graph(graph: dict[str, list[dict[str, Any]]]) -> str:
    rows = [("entity", *_fields(item, "name", "type", "description")) for item in graph["entities"]]
    relations = [
        ("relation", *_fields(item, "source", "target", "keywords", "description")) for item in graph["relationships"]
    ]
    return "\n".join([_FIELD.join(row) for row in (*rows, *relations)] + [_DONE])


def _fields(item: dict[str, Any], *names: str) -> list[str]:
    values = [item.get(name, "") for name in names]
    flat = [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values]
    return [" ".join(value.split()).replace("<|", "< |") for value in flat]


def _graph_of_records(text: str) -> dict[str, list[dict[str, Any]]]:
    graph: dict[str, list[dict[str, Any]]] = {"entities": [], "relationships": []}
    for line in text.splitlines():
        kind, *values = [value.strip(" \"'()") for value in line.split(_FIELD)]
        if kind.lower() == "entity" and len(values) == _FIELDS["entity"] - 1:
            graph["entities"].append(dict(zip(("name", "type", "description"), values, strict=True)))
        elif kind.lower() in ("relation", "relationship") and len(values) == _FIELDS["relation"] - 1:
            names = ("source", "target", "keywords", "description")
            graph["relationships"].append(dict(zip(names, values, strict=True)))
    return graph


def _strings(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else []
    return tuple(item.strip() for item in values if isinstance(item, str) and item.strip())
