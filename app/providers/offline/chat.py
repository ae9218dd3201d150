"""The offline chat model: answers LightRAG's prompts by rules, always the same for the same text."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

from app.providers.contract import AS_THE_PROVIDER_LIKES, ChatMessage, ChatReply, ModelProfile, Purpose, Sampling
from app.providers.offline.graph import Entity, Relation, extract_graph
from app.providers.offline.prompts import (
    DONE,
    FIELD,
    AnswerTask,
    ExtractionTask,
    GleaningTask,
    KeywordsTask,
    SummaryTask,
    read_task,
)
from app.providers.usage import record_call
from app.text.keywords import extract_keywords
from app.text.sentences import split_sentences
from app.text.tokens import count_tokens

_SUMMARY_CHARS: Final = 2_000
_ANSWER: Final = "The offline model writes no answers: read the evidence of the context, or register a chat model."
_PIECE_CHARS: Final = 64


class OfflineChat:
    """A `ChatModel` that knows names and the sentences they share, and nothing else."""

    def __init__(self, profile: ModelProfile) -> None:
        self.profile = profile

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose,
        json_mode: bool = False,
        max_tokens: int | None = None,  # noqa: ARG002
        sampling: Sampling = AS_THE_PROVIDER_LIKES,  # noqa: ARG002
    ) -> ChatReply:
        """`max_tokens` and `sampling` are ignored: a reply of rules is as long as it has to be, and always the same."""
        text = await asyncio.to_thread(_reply, messages, json_mode)
        tokens_in = sum(count_tokens(message.content) for message in messages)
        tokens_out = count_tokens(text)
        record_call(self.profile, purpose, tokens_in=tokens_in, tokens_out=tokens_out, is_estimated=False)
        return ChatReply(text, tokens_in, tokens_out, is_estimated=False, finish_reason="stop")

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        purpose: Purpose,
        max_tokens: int | None = None,
        sampling: Sampling = AS_THE_PROVIDER_LIKES,
        on_end: Callable[[ChatReply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        reply = await self.complete(messages, purpose=purpose, max_tokens=max_tokens, sampling=sampling)
        for start in range(0, len(reply.text), _PIECE_CHARS):
            yield reply.text[start : start + _PIECE_CHARS]
        if on_end is not None:
            on_end(reply)

    async def aclose(self) -> None:
        """Nothing to close."""


def _reply(messages: Sequence[ChatMessage], json_mode: bool) -> str:
    match read_task(messages):
        case ExtractionTask() as task:
            return _extraction(task, json_mode)
        case GleaningTask():
            return json.dumps({"entities": [], "relationships": []}) if json_mode else DONE
        case KeywordsTask(query):
            keywords = extract_keywords(query)
            return json.dumps(
                {"high_level_keywords": keywords.high, "low_level_keywords": keywords.low}, ensure_ascii=False
            )
        case SummaryTask(name, descriptions):
            return summarise(name, descriptions)
        case AnswerTask():
            return _ANSWER


def _extraction(task: ExtractionTask, json_mode: bool) -> str:
    entities, relations = extract_graph(task.text, task.types, max_entities=task.max_entities)
    relations = relations[: max(0, task.max_records - len(entities))]
    return _as_json(entities, relations) if json_mode else _as_records(entities, relations)


def _as_records(entities: list[Entity], relations: list[Relation]) -> str:
    rows = [FIELD.join(("entity", entity.name, entity.type, entity.description)) for entity in entities]
    rows += [
        FIELD.join(("relation", relation.source, relation.target, relation.keywords, relation.description))
        for relation in relations
    ]
    return "\n".join([*rows, DONE])


def _as_json(entities: list[Entity], relations: list[Relation]) -> str:
    return json.dumps(
        {
            "entities": [
                {"name": entity.name, "type": entity.type, "description": entity.description} for entity in entities
            ],
            "relationships": [
                {
                    "source": relation.source,
                    "target": relation.target,
                    "keywords": relation.keywords,
                    "description": relation.description,
                }
                for relation in relations
            ],
        },
        ensure_ascii=False,
    )


def summarise(name: str, descriptions: Sequence[str]) -> str:
    """The sentences of the descriptions, each once, up to about 2,000 characters; the name alone where there are none."""
    kept: dict[str, None] = {}
    length = 0
    for description in descriptions:
        for sentence in split_sentences(description):
            if sentence not in kept and length + len(sentence) <= _SUMMARY_CHARS:
                kept[sentence] = None
                length += len(sentence) + 1
    return " ".join(kept) or name
