"""Links between the pages of this repository lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.docs.pages import DOCS, anchors, links

PAGES = sorted({*ROOT.glob("*.md"), *DOCS.glob("*.md"), *ROOT.glob("bench/**/*.md"), *ROOT.glob("tests/**/*.md")})


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    broken = [target for target in links(path) if "://" not in target and not leads_somewhere(path, target)]
    assert broken == []


def leads_somewhere(path: Path, target: str) -> bool:
    name, _, fragment = target.partition("#")
    found = path.parent / name if name else path
    return found.exists() and (not fragment or fragment in anchors(found))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(path: Path) -> None:
    named = re.findall(
        r"`((?:app|workers|migrations|tests|deploy|bench|demo|docs)/[\w./-]*)(?:::\w+)?`", path.read_text()
    )
    assert [name for name in named if not (ROOT / name).exists()] == []
