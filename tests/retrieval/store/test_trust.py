"""The rule of trust: whatever asks, in whichever form, gets the same answer."""

from itertools import product
from uuid import UUID

from sqlalchemy import text

from app.retrieval.store.passages import insert_passages, trusted_ids
from app.retrieval.store.trust import REASONS, UNTRUSTED_PASSAGES, reasons_of, trust_parameters
from tests.retrieval.corpora import Corpus, drafts

STATES = ("queued", "running", "ready", "partial", "failed", "cancelled")


def expected(state: str, cleanliness: str, is_live: bool, is_deleting: bool) -> str | None:
    if is_deleting:
        return "deleting"
    if cleanliness == "purging":
        return "purging"
    if state not in ("ready", "partial"):
        return "not_ready"
    if not is_live:
        return "replaced"
    return "partial" if state == "partial" else None


async def test_every_state_has_one_reason_and_all_forms_of_the_rule_agree(corpus: Corpus) -> None:
    told: dict[UUID, str | None] = {}
    passages: dict[UUID, int] = {}
    async with corpus.database.tenant(corpus.ref.tenant_id) as session:
        for state, cleanliness, is_live, is_deleting in product(
            STATES, ("clean", "purging"), (True, False), (True, False)
        ):
            version = await corpus.add_version(session, "T", state=state)
            [row] = await insert_passages(session, version, "T", drafts(["some text"]))
            scope = {"version": version.version_id, "document": version.document_id, "cleanliness": cleanliness}
            await session.execute(
                text("UPDATE index_states SET cleanliness = :cleanliness WHERE version_id = :version"), scope
            )
            if not is_live:
                await session.execute(text("DELETE FROM live_versions WHERE version_id = :version"), scope)
            if is_deleting:
                await session.execute(text("UPDATE documents SET deleting_at = now() WHERE id = :document"), scope)
            await session.execute(
                text("INSERT INTO lazy_versions VALUES (:tenant, :version, :workspace, 1, 2)"),
                scope | {"tenant": corpus.ref.tenant_id, "workspace": corpus.ref.number},
            )
            told[version.version_id] = expected(state, cleanliness, is_live, is_deleting)
            passages[version.version_id] = row.id
        reasons = await reasons_of(session, told, engine="lazy", include_partial=False)
        trusted = await trusted_ids(session, corpus.ref, passages.values(), engine="lazy")
        parameters = {"tenant_id": corpus.ref.tenant_id, "workspace": corpus.ref.number}
        parameters |= trust_parameters("lazy", include_partial=False)
        untrusted = set(await session.scalars(text(UNTRUSTED_PASSAGES), parameters))
        with_partial = await reasons_of(session, told, engine="lazy", include_partial=True)
    assert reasons == {version: reason for version, reason in told.items() if reason is not None}
    assert set(reasons.values()) == set(REASONS)
    assert trusted == {passages[version] for version, reason in told.items() if reason is None}
    assert untrusted == set(passages.values()) - trusted
    assert with_partial == {version: reason for version, reason in reasons.items() if reason != "partial"}
