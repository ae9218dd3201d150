"""Every key of whole corpora stays what it is: a change would orphan the indexes that are out there."""

import gzip
import json
from hashlib import blake2b
from pathlib import Path

import pytest

from app.retrieval.lazy.selection import select_mentions
from app.retrieval.store.postings import count_terms
from app.text.concepts.words import sentences

CORPORA = Path(__file__).parents[1] / "data" / "retrieval"
PASSAGES = 120


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("2wiki_context", "5b4bb1675490203a"),
        ("xquad_ru", "b42d1f8b10b4be1e"),
        ("xquad_zh", "322e319b5e70ed33"),
    ],
)
def test_keys_of_a_corpus(name: str, digest: str) -> None:
    """After a wanted change of the rules: take the digest that this test prints, and say in CHANGELOG.md to reindex."""
    found = blake2b(digest_size=8)
    with gzip.open(CORPORA / f"{name}.corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        for _, line in zip(range(PASSAGES), file, strict=False):
            row = json.loads(line)
            read = sentences(row["text"])
            mentions = select_mentions(row["title"] or "", (), read)
            terms = count_terms(row["title"] or "", (), [token for sentence in read for token in sentence.tokens])
            found.update(json.dumps([[mention.key for mention in mentions], terms.keys]).encode())
    assert found.hexdigest() == digest
