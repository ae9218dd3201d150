"""Documents for both runs: each text is unlike any other, and its names tie it to others of its workspace."""

import random
from dataclasses import dataclass, replace

PORTS = ("Lindau", "Skerry", "Halvorsund", "Marrow", "Estey", "Calder", "Ombra", "Tessin")
PEOPLE = ("Ada Moreau", "Jonas Brandt", "Greta Holm", "Milo Ferris", "Ines Caro", "Oskar Lund")
CARGO = ("copper wire", "dried fish", "slate tiles", "linen", "lamp oil", "sea charts", "cork", "barley")
FILLER = " It was noted in the log of the yard and read again in the evening by the people who kept the watch." * 3


@dataclass(frozen=True)
class Text:
    """A document of the corpus. `revision` counts its replacements."""

    workspace: str
    filename: str
    sections: int
    seed: int
    revision: int = 0

    @property
    def content(self) -> str:
        """One chunk a section. Always the same for the same fields."""
        chosen = random.Random(f"{self.seed} {self.workspace} {self.filename} {self.revision}")
        return "\n\n".join(self._section(chosen, number) for number in range(self.sections))

    def _section(self, chosen: random.Random, number: int) -> str:
        place = self.workspace.capitalize()
        ship = f"Albatross {self.filename.removesuffix('.md').capitalize()}x{number}r{self.revision}"
        captain, other = chosen.sample(PEOPLE, 2)
        harbour, next_harbour = chosen.sample(PORTS, 2)
        return (
            f"# Voyage {number} of {self.filename}, revision {self.revision}\n\n"
            f"Captain {captain} took the ship {ship} from Port {harbour} to Port {next_harbour} with"
            f" {chosen.randint(10, 900)} bales of {chosen.choice(CARGO)}. Governor {other} of {place} met the {ship}"
            f" in Port {next_harbour}. Captain {captain} wrote to Governor {other} on day {chosen.randint(1, 360)}.{FILLER}"
        )

    def revised(self) -> "Text":
        return replace(self, revision=self.revision + 1)


def make_corpus(seed: int, *, documents: int, workspaces: int) -> list[Text]:
    """Dealt out to workspaces in turn, four to eight sections each."""
    chosen = random.Random(seed)
    return [
        Text(f"beacon{number % workspaces}", f"letter{number}.md", chosen.randint(4, 8), seed)
        for number in range(documents)
    ]
