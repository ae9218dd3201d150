"""Turns a filter into the trusted versions and passages that it allows, once for each search and in its snapshot.

Every leg then looks among these only, before it ranks: a filter that 20 passages meet brings those 20, however many
others are nearer. What a filter says reaches SQL as parameters; its text is put together from constants of ours.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause, text

from app.db.session import TenantSession
from app.retrieval.contract import Engine, WorkspaceRef
from app.retrieval.filters import NO_FILTER, Condition, EvidenceFilter, FieldType, Operator
from app.retrieval.store.trust import judged, trust_parameters, trusted

# What a field holds, as its declared type; NULL, which no comparison accepts, where it holds something else: documents
# may be older than the declaration. {value} is the field's JSON, {text} the same as text.
_READ: Final[Mapping[FieldType, str]] = {
    "string": "CASE WHEN jsonb_typeof({value}) = 'string' THEN {text} END",
    "number": "CASE WHEN jsonb_typeof({value}) = 'number' THEN CAST({value} AS numeric) END",
    "boolean": "CASE WHEN jsonb_typeof({value}) = 'boolean' THEN CAST({value} AS boolean) END",
    "date": r"""
      CASE WHEN jsonb_typeof({value}) <> 'string' THEN NULL
           WHEN {text} ~ '^\d{{4}}-\d\d-\d\d$' AND pg_input_is_valid({text}, 'date')
           THEN CAST(CAST({text} AS date) AS timestamp) AT TIME ZONE 'UTC'
           WHEN {text} ~ '^\d{{4}}-\d\d-\d\dT\d\d\:\d\d\:\d\d([.]\d{{1,6}})?(Z|[+-]\d\d\:\d\d)$'
            AND pg_input_is_valid({text}, 'timestamptz')
           THEN CAST({text} AS timestamptz) END""",
}
# Numbers come as text, which Postgres reads exactly.
_GIVEN: Final[Mapping[FieldType, str]] = {
    "string": "CAST({name} AS text{many})",
    "number": "CAST(CAST({name} AS text{many}) AS numeric{many})",
    "boolean": "CAST({name} AS boolean{many})",
    "date": "CAST({name} AS timestamptz{many})",
}
_COMPARISONS: Final[Mapping[Operator, str]] = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

# Documents as their newest version is.
_NEWEST: Final = """
  FROM documents d
  JOIN versions v ON v.tenant_id = d.tenant_id AND v.document_id = d.id
   AND NOT EXISTS (SELECT 1 FROM versions n WHERE n.tenant_id = v.tenant_id AND n.document_id = v.document_id
                                              AND n.ordinal > v.ordinal)
 WHERE d.tenant_id = :tenant_id AND d.workspace_id = :workspace_id"""

_ALLOWED = f"""
WITH allowed AS MATERIALIZED (
  SELECT l.tenant_id, l.version_id, l.document_id
    FROM live_versions l
    JOIN documents d ON d.tenant_id = l.tenant_id AND d.id = l.document_id
    JOIN versions v ON v.tenant_id = l.tenant_id AND v.id = l.version_id
    {trusted("l")}
   WHERE l.tenant_id = :tenant_id AND l.workspace_id = :workspace_id AND l.engine = :engine
         MEETING
), passage AS (
  SELECT p.id FROM allowed a JOIN passages p ON p.tenant_id = a.tenant_id AND p.version_id = a.version_id
), withheld AS (
  SELECT source.reason, count(*) AS documents
    FROM (SELECT v.tenant_id, v.id AS version_id {_NEWEST}
             AND NOT EXISTS (SELECT 1 FROM allowed a WHERE a.document_id = d.id) MEETING OFFSET 0) other
         {judged("other")}
   WHERE source.reason <> 'not_ready'
   GROUP BY source.reason
)
SELECT ARRAY(SELECT version_id FROM allowed ORDER BY version_id) AS version_ids,
       (SELECT count(*) FROM passage) AS passage_count,
       (SELECT '{{' || coalesce(string_agg(CAST(id AS text), ',' ORDER BY id), '') || '}}' FROM passage) AS passages,
       (SELECT jsonb_object_agg(reason, documents) FROM withheld) AS withheld
"""  # noqa: S608 - put together from constants of ours

# Whether by state or by the filter nothing is allowed.
_MATCHING = f"SELECT count(*) {_NEWEST} AND d.deleting_at IS NULL MEETING"

# As a scalar, so that it is read once and not for every row or loop.
ALLOWED_IDS: Final = "CAST((SELECT CAST(CAST(:allowed AS text) AS bigint[])) AS bigint[])"

_WITHIN: Final = re.compile(r"WITHIN\(([a-z_.]+)\)")


@dataclass(frozen=True)
class Allowed:
    """Trusted versions that meet a filter, and the ids of their passages as a Postgres array, in order.

    `withheld` counts, by reason, the other documents that meet it and are indexed.
    """

    version_ids: tuple[UUID, ...]
    passages: str
    passage_count: int
    withheld: Mapping[str, int] = field(default_factory=dict)


async def resolve(
    session: TenantSession, ref: WorkspaceRef, wanted: EvidenceFilter, *, engine: Engine, include_partial: bool
) -> Allowed | None:
    """What `wanted` allows; None where it does not narrow."""
    if wanted == NO_FILTER:
        return None
    statement, parameters = _narrowed(_ALLOWED, ref, wanted)
    parameters |= trust_parameters(engine, include_partial=include_partial)
    row = (await session.execute(statement, parameters)).one()
    return Allowed(tuple(row.version_ids), row.passages, row.passage_count, row.withheld or {})


async def nothing_allowed(session: TenantSession, ref: WorkspaceRef, wanted: EvidenceFilter, engine: Engine) -> str:
    """Why a filter allows nothing, as a sentence."""
    statement, parameters = _narrowed(_MATCHING, ref, wanted)
    matching = await session.scalar(statement, parameters)
    if not matching:
        return "No document of the workspace meets the filter."
    return f"None of the {matching} documents that meet the filter can be answered from by the {engine} engine now."


def within(template: str, *, is_narrowed: bool) -> str:
    """`template` with each `WITHIN(column)` as a condition on a passage's id, or without it where nothing narrows."""
    return _WITHIN.sub(rf" AND \1 = ANY ({ALLOWED_IDS})" if is_narrowed else "", template)


def allowed_parameters(allowed: Allowed | None) -> dict[str, Any]:
    """The parameters of `within`."""
    return {} if allowed is None else {"allowed": allowed.passages}


def _narrowed(template: str, ref: WorkspaceRef, wanted: EvidenceFilter) -> tuple[TextClause, dict[str, Any]]:
    parameters: dict[str, Any] = {"tenant_id": ref.tenant_id, "workspace_id": ref.workspace_id}
    meeting = "".join(f" AND {condition}" for condition in _meeting(wanted, parameters))
    return text(template.replace("MEETING", meeting)), parameters


def _meeting(wanted: EvidenceFilter, parameters: dict[str, Any]) -> Iterator[str]:
    """Conditions on a document `d` and its version `v`; fills in their parameters."""
    plain = {
        "document_ids": "d.id = ANY (CAST(:document_ids AS uuid[]))",
        "media_types": "split_part(v.media_type, ';', 1) = ANY (CAST(:media_types AS text[]))",
        "languages": "v.language = ANY (CAST(:languages AS text[]))",
        "uploaded_after": "d.created_at >= CAST(:uploaded_after AS timestamptz)",
        "uploaded_before": "d.created_at < CAST(:uploaded_before AS timestamptz)",
    }
    for name, condition in plain.items():
        value = getattr(wanted, name)
        if value:
            parameters[name] = list(value) if isinstance(value, tuple) else value
            yield condition
    for number, each in enumerate(wanted.metadata):
        yield _compared(each, number, parameters)


def _compared(condition: Condition, number: int, parameters: dict[str, Any]) -> str:
    name = f"value_{number}"
    parameters[f"field_{number}"] = condition.field
    value = f"(d.metadata -> CAST(:field_{number} AS text))"
    words = f"(d.metadata ->> CAST(:field_{number} AS text))"
    if condition.operator == "exists":
        return f"({words} IS NOT NULL)" if condition.values[0] else f"({words} IS NULL)"
    if condition.type == "string_list":
        parameters[name] = list(condition.values)
        holds = f"jsonb_exists_any({value}, CAST(:{name} AS text[]))"
        return f"CASE WHEN jsonb_typeof({value}) = 'array' THEN {holds} ELSE false END"
    many = "[]" if condition.operator == "in" else ""
    parameters[name] = list(condition.values) if many else condition.values[0]
    read = _READ[condition.type].format(value=value, text=words)
    given = _GIVEN[condition.type].format(name=f":{name}", many=many)
    if condition.operator == "in":
        return f"({read}) = ANY ({given})"
    return f"({read}) {_COMPARISONS[condition.operator]} {given}"
