"""An answer without a language model: the sentences of the evidence that share most with the question, quoted. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from app.retrieval.contract import PassageEvidence
from app.text.concepts.terms import terms
from app.text.sentences import sentence_spans

MAX_SENTENCES: Final = 5
# Further passages are read for their order only: what stands far down is there for want of better.
PASSAGES_READ: Final = 10
OFFLINE_NOTICE: Final = (
    "No language model wrote this: the workspace uses the offline model, which only quotes sentences of the documents."
)
_NOTHING: Final = "The documents of this workspace hold nothing that matches the question."


def extractive_answer(question: str, cited: Sequence[PassageEvidence]) -> str:
    """At most five sentences, those of the best passages first, each with the mark of its passage.

    A sentence counts by the question's terms in it, rare ones among the passages read more than common ones.
    """
    sentences = [
        (number, passage.text[start:end])
        for number, passage in enumerate(cited[:PASSAGES_READ], 1)
        for start, end in sentence_spans(passage.text)
    ]
    if not sentences:
        return f"{OFFLINE_NOTICE}\n\n{_NOTHING}"
    asked = set(terms(question))
    held = [asked.intersection(terms(text)) for _, text in sentences]
    frequency = Counter(term for found in held for term in found)
    weights = {term: math.log(1 + len(sentences) / count) for term, count in frequency.items()}
    order = sorted(range(len(sentences)), key=lambda at: (-sum(sorted(weights[term] for term in held[at])), at))
    chosen = sorted([at for at in order if held[at]][:MAX_SENTENCES] or order[:1])
    lines = (f"- {' '.join(sentences[at][1].split())} [{sentences[at][0]}]" for at in chosen)
    return "\n".join([OFFLINE_NOTICE, "", *dict.fromkeys(lines)])
