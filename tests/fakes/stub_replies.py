"""What the stub model answers: names of the prompt's text and the sentences they share, always the same."""

import hashlib
import itertools
import json
import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

FIELD, DONE = "<|#|>", "<|COMPLETE|>"
NAME = re.compile(r"[A-Z][\w&'’.-]*(?:\s+(?:of|the|and|de|van|von)?\s*[A-Z0-9][\w&'’.-]*)*")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
NOT_CJK = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af_]+")
# fmt: off
STARTERS = frozenset({
    "The", "A", "An", "In", "On", "At", "It", "He", "She", "They", "This", "That", "These", "Those", "Its", "His", "Her",
    "Their", "However", "When", "While", "After", "Before", "During", "For", "From", "And", "But",
})
# fmt: on


@dataclass(frozen=True)
class GraphLimits:
    """How dense an extraction may be: the defaults are about a real model's."""

    entities: int = 16
    relations: int = 16


def names(text: str, limit: int = 400) -> list[str]:
    """The entity names of `text`: capitalised phrases in order, then repeated runs of scripts without capitals."""
    found: dict[str, None] = {}
    for match in NAME.finditer(text):
        words = match.group().split()
        while words and words[0] in STARTERS:
            words = words[1:]
        name = " ".join(words).strip(" .,'’-")
        if len(name) > 2:
            found.setdefault(name[:120])
    for run in _repeated_runs(text)[:20]:
        found.setdefault(run)
    return list(found)[:limit]


def _repeated_runs(text: str) -> list[str]:
    runs: Counter[str] = Counter()
    for run in CJK.findall(text):
        for size in (4, 3, 2):
            runs.update(run[start : start + size] for start in range(len(run) - size + 1))
    kept: list[str] = []
    for run, count in runs.most_common(400):
        if count > 1 and not any(run in other for other in kept):
            kept.append(run)
    return kept


def graph(text: str, limits: GraphLimits) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Entities and relations with descriptions, both taken from the sentences that hold them."""
    entities: dict[str, str] = {}
    relations: dict[tuple[str, str], str] = {}
    known = names(text, limits.entities)
    for sentence in filter(str.strip, re.split(r"(?<=[.!?。！？])\s*", text)):
        here = [name for name in known if name in sentence][:6]
        quote = " ".join(sentence.split())[:300].replace("<|", "< |")
        for name in here:
            entities.setdefault(name, quote)
        for left, right in itertools.combinations(here, 2):
            relations.setdefault((left, right), quote)
    return entities, dict(itertools.islice(relations.items(), limits.relations))


def classify(prompt: str) -> str:
    """The kind of a call: keywords, glean, extract, summary or answer."""
    if "---Real Data---" in prompt and "high_level_keywords" in prompt:
        return "keywords"
    if "Based on the last extraction task" in prompt:
        return "glean"
    if "Extract entities and relationships" in prompt or "---Input Text---" in prompt:
        return "extract"
    return "summary" if "Description List:" in prompt else "answer"


def reply(kind: str, prompt: str, json_mode: bool, limits: GraphLimits) -> str:
    """The answer to a prompt of a kind."""
    if kind == "keywords":
        return _keywords(prompt)
    if kind == "glean":
        return json.dumps({"entities": [], "relationships": []}) if json_mode else DONE
    if kind == "summary":
        parts = re.findall(r'"Description"\s*:\s*"(.*?)"\s*}', prompt)
        return " ".join(dict.fromkeys(parts))[:1200] or "No description."
    if kind == "answer":
        return "Stub answer: the context was received."
    return _extraction(*graph(_input_text(prompt), limits), json_mode)


def _input_text(prompt: str) -> str:
    match = re.search(r"---Input Text---\s*```\n?(.*?)\n?```\s*---Output---", prompt, re.DOTALL)
    return match.group(1) if match else prompt.rsplit("---Input Text---", 1)[-1]


def _keywords(prompt: str) -> str:
    query = prompt.rsplit("User Query:", 1)[1].split("---Output---")[0].strip()
    words = re.findall(r"\w{4,}", query)
    low = names(query) or words or [query[:60]]
    high = [word for word in words if word not in " ".join(low)][:4] or low[:2]
    return json.dumps({"high_level_keywords": high, "low_level_keywords": low[:8]}, ensure_ascii=False)


def _extraction(entities: dict[str, str], relations: dict[tuple[str, str], str], json_mode: bool) -> str:
    if json_mode:
        answer = {
            "entities": [{"name": name, "type": "concept", "description": text} for name, text in entities.items()],
            "relationships": [
                {"source": left, "target": right, "keywords": "related", "description": text}
                for (left, right), text in relations.items()
            ],
        }
        return json.dumps(answer, ensure_ascii=False)
    rows = [FIELD.join(("entity", name, "concept", text)) for name, text in entities.items()]
    rows += [FIELD.join(("relation", left, right, "related", text)) for (left, right), text in relations.items()]
    return "\n".join([*rows, DONE])


def embed(text: str, dimension: int) -> list[float]:
    """A feature-hashed bag of words with sub-linear counts: equal words give near vectors, nothing more."""
    vector = [0.0] * dimension
    for term, count in Counter(_terms(text)).items():
        digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
        weight = (1 + math.log(count)) * min(3.0, 0.5 + len(term) / 5)
        for part in (digest[:4], digest[4:]):
            slot = int.from_bytes(part, "big")
            vector[slot % dimension] += weight if slot & 1 else -weight
    norm = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / norm for value in vector]


def likeness(query: str, document: str) -> float:
    """The share of the query's words that the document holds, a longer document less: a reranker's score."""
    asked, held = set(_terms(query)), _terms(document)
    return len(asked.intersection(held)) / (len(asked) or 1) / (1 + len(held) / 1000)


def _terms(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text).lower()
    found = NOT_CJK.findall(text)
    for run in CJK.findall(text):
        found += [run[start : start + 2] for start in range(max(1, len(run) - 1))]
    return found
