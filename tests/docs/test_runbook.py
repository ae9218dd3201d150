"""The runbook's commands are ones that exist, of services, files and paths that exist; and each part says where it was tried."""

import re
import shlex
from collections.abc import Iterator
from itertools import islice, pairwise

import asyncpg
import pytest
import yaml

from app.main import create_app
from deploy.compose_file import FILE
from tests.architecture.sources import ROOT
from tests.cluster import Cluster
from tests.docs.pages import FENCE, page, rows

RUNBOOK = page("runbook.md")
SERVICES = yaml.safe_load(FILE.read_text())["services"]
# The options of compose that the runbook uses; those that take a value.
FLAGS = {"-d", "--rm", "-T", "--wait", "--dry-run", "--build"}
VALUED = {"-e", "--scale", "--since"}
ON_SERVICES = {"up", "run", "exec", "stop", "kill", "logs"}
INLINE = re.compile(r"`(compose [^`]+)`")
KUBERNETES = ROOT / "deploy" / "kubernetes"
SQL = re.compile(r"(?s)psql .*?<<'END'\n(.*?)END")


def blocks(kind: str = "bash") -> Iterator[str]:
    for block in FENCE.finditer(RUNBOOK):
        if block["info"].split()[:1] == [kind]:
            yield block["text"].replace("\\\n", " ")


def lines(program: str) -> list[list[str]]:
    """The calls of a program, in blocks and in sentences, as words; what comes after a pipe or an arrow is left out."""
    shown = [line for block in blocks() for line in block.splitlines()]
    shown += INLINE.findall(RUNBOOK) if program == "compose" else []
    calls = [call.strip() for line in shown for call in line.split("&&")]
    return [
        shlex.split(re.split(r" [|<>]{1,2}|<<", call)[0], comments=True)
        for call in calls
        if call.startswith(f"{program} ") and "…" not in call
    ]


@pytest.mark.parametrize("words", lines("compose"), ids=" ".join)
def test_compose_is_told_of_services_that_it_has(words: list[str]) -> None:
    kind, rest = words[1], iter(words[2:])
    # What follows the service is a command in its container.
    named = list(islice(positional(rest), 1 if kind in {"run", "exec"} else None)) if kind in ON_SERVICES else []
    assert kind in {*ON_SERVICES, "build", "ps"}
    assert set(named) <= SERVICES.keys()


def positional(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word in VALUED:
            value = next(words)
            assert word != "--scale" or value.split("=")[0] in SERVICES
        elif word not in FLAGS:
            assert not word.startswith("-"), word
            yield word


@pytest.mark.parametrize("words", lines("kubectl"), ids=" ".join)
def test_kubernetes_is_told_of_files_and_objects_that_are_there(words: list[str]) -> None:
    objects = {
        f"{document['kind'].lower()}/{document['metadata']['name']}"
        for path in KUBERNETES.rglob("*.yaml")
        for document in yaml.safe_load_all(path.read_text())
        if document and "metadata" in document
    }
    for before, word in pairwise(words):
        if before in {"-f", "-k"} and word != ".":
            assert (KUBERNETES / word.removeprefix("deploy/kubernetes/")).exists()
        if re.fullmatch(r"(job|deployment|statefulset)/\S+", word):
            assert word in objects


async def test_the_statements_about_a_full_database_run(cluster: Cluster) -> None:
    (statements,) = SQL.findall("\n".join(blocks()))
    connection = await asyncpg.connect(cluster.admin_url)
    try:
        for statement in statements.split(";"):
            if statement.strip():
                await connection.fetch(statement)
    finally:
        await connection.close()


def test_the_addresses_that_are_asked_exist() -> None:
    asked = re.findall(r"curl \S* ?http://127\.0\.0\.1:8000(/\S*)", RUNBOOK)
    assert asked
    assert set(asked) <= create_app().openapi()["paths"].keys()


def test_every_part_says_where_it_was_tried() -> None:
    """And by a command of the Makefile or by tests that are there."""
    parts = re.findall(r"(?m)^## (.+)$", RUNBOOK)
    tried = rows(RUNBOOK, "part", "tried by")
    assert [row["part"] for row in tried] == [part for part in parts if part != "Where each part was tried"]
    makefile = (ROOT / "Makefile").read_text()
    for row in tried:
        proofs = re.findall(r"`([^`]+)`", row["tried by"])
        assert proofs, row
        for proof in proofs:
            if proof.startswith("make "):
                assert f"\n{proof.split()[1]}:" in makefile, proof
            else:
                path, _, name = proof.partition("::")
                assert name in (ROOT / path).read_text() if name else (ROOT / path).exists(), proof
