"""Which answers are read again before a name is forgotten: those that may give it, a page at a time."""

import pytest

from app.retrieval.lightrag import departure_store
from app.retrieval.lightrag.departure_store import DepartureStore, words_pattern
from app.retrieval.lightrag.pool import EngineDatabase, inside
from tests.retrieval.lightrag.doubles import Corpus

_ANSWER = "INSERT INTO lightrag_llm_cache (workspace, id, return_value, chunk_id, cache_type) VALUES ($1, $2, $3, $2, 'extract')"


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("IT", "entity<|#|>it<|#|>concept<|#|>x", "entity<|#|>Digital Twin<|#|>concept<|#|>with x"),
        ("C++", '{"name": "c++"}', "entity<|#|>Acme<|#|>company<|#|>makes clocks"),
        ("%", "entity<|#|>%<|#|>unit<|#|>x", "entity<|#|>Acme<|#|>company<|#|>makes clocks"),
        ("AT&T", 'entity<|#|>"AT&amp;T"<|#|>company', "entity<|#|>That Thing<|#|>concept"),
        ("IT部门", "entity<|#|>IT 部门<|#|>team", "entity<|#|>部门<|#|>team<|#|>entity"),
        ("New York", "entity<|#|>ＮＥＷ\u00a0York<|#|>city", "entity<|#|>Newer Yorks<|#|>city"),
        ("a" * 300, f"entity<|#|>{'a' * 200}~0123456789<|#|>x", f"entity<|#|>{'a' * 50}<|#|>x"),
    ],
)
async def test_a_name_is_looked_for_as_words_of_its_own(
    pool: EngineDatabase, name: str, said: str, unsaid: str
) -> None:
    statement = "SELECT normalize(t, NFKC) ~* $2 AS found FROM unnest($1::text[]) WITH ORDINALITY u (t, n) ORDER BY n"
    rows = await pool.fetch(statement, [said, unsaid], words_pattern(["Nobody", name]))
    assert [row["found"] for row in rows] == [True, False]


async def test_answers_of_others_are_read_a_page_at_a_time(
    pool: EngineDatabase, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departure_store, "PAGE_ANSWERS", 2)
    ref, own = corpus.workspace.ref, "11111111-1111-4111-8111-111111111111"
    said = {"a": "IT works", "b": "with", f"{own}-chunk-000": "IT", "c": "the IT"}
    with inside(ref):
        for key, answer in said.items():
            await pool.fetch(_ANSWER, ref.engine_name, key, answer)
        store, pages = DepartureStore(pool, ref, own), []
        after: str | None = ""
        while after is not None:
            answers, after = await store.other_answers(["IT"], after)
            pages.append(list(answers))
    assert max(map(len, pages)) <= 2
    assert [answer for page in pages for answer in page] == ["IT works", "the IT"]
