"""`make eval`: retrieval quality over a folder of evaluation sets, on servers of its own."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from app.db.provision import provision_database
from app.db.schema import upgrade_schema
from app.db.session import Database
from app.devstack.folders import create_folder, stack_home
from app.devstack.servers import Servers
from app.domain.models.offline import register_offline_models
from app.domain.models.service import ModelProfiles
from app.providers.offline.embeddings import OfflineEmbeddings
from app.settings import DEVELOPMENT_SECRET
from bench.corpus import index_set
from bench.datasets import EvaluationSet, cross_language, read_sets, variants
from bench.embeddings import CachedEmbedding
from bench.evaluation import DEFAULT_MODES, SetResult, evaluate
from bench.judge import open_judge
from bench.report import render, verdicts
from bench.sidebyside.corpus import DEFAULT_FOLDER


def main(
    data: Annotated[
        Path, typer.Option(help="A folder of NAME.corpus.jsonl.gz and NAME.dev.jsonl.gz.")
    ] = DEFAULT_FOLDER,
    output: Annotated[Path | None, typer.Option(help="Where the page goes, beside the terminal.")] = None,
    modes: Annotated[str, typer.Option(help="Comma-separated; the default is all that need no chat model.")] = "",
    sets: Annotated[str, typer.Option(help="Comma-separated names; all of the folder by default.")] = "",
    questions: Annotated[int, typer.Option(help="At most so many a set; 0 for all.")] = 0,
    embedding: Annotated[str, typer.Option(help="An offline embedding profile.")] = "offline-use",
    judge: Annotated[str, typer.Option(help="A chat profile of the installation, to mark the evidence as well.")] = "",
    derived: Annotated[
        bool, typer.Option(help="Also multi-hop sets without titles, in lower case, as long documents.")
    ] = True,
) -> None:
    """Measure, print the page and write it; exit 1 if the lazy mode is not as good as it has to be."""
    if not any(data.glob("*.corpus.jsonl.gz")):
        typer.echo(f"skipped: there are no evaluation sets in {data}; say DATA=folder")
        return
    chosen = _sets(data, _split(sets), questions or None, derived=derived)
    asked = _split(modes) or list(DEFAULT_MODES)
    results = asyncio.run(_run(chosen, asked, embedding, judge or None))
    given = {"DATA": data.name, "QUESTIONS": questions, "SETS": sets, "MODES": modes, "JUDGE": judge}
    command = " ".join(["make eval", *(f"{name}={value}" for name, value in given.items() if value)])
    page = render(results, asked, embedding=embedding, command=command, judge=judge or None)
    typer.echo(page)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(page)
    if verdicts(results):
        raise typer.Exit(1)


def _sets(data: Path, names: Sequence[str], limit: int | None, *, derived: bool) -> list[EvaluationSet]:
    originals = list(read_sets(data, names, limit))
    if not derived:
        return originals
    found = [item for original in originals for item in (original, *variants(original))]
    return [*found, *cross_language(originals)]


def _split(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


async def _run(
    chosen: Sequence[EvaluationSet], modes: Sequence[str], embedding: str, judge_profile: str | None
) -> list[SetResult]:
    results = []
    async with AsyncExitStack() as stack:
        judge = await stack.enter_async_context(open_judge(judge_profile)) if judge_profile else None
        owner, database = await stack.enter_async_context(_databases())
        profiles = ModelProfiles(owner, SecretStr(DEVELOPMENT_SECRET))
        await register_offline_models(profiles)
        model = OfflineEmbeddings(await profiles.get_by_name(embedding))
        cached = CachedEmbedding(model, stack_home() / "embeddings.sqlite")
        stack.push_async_callback(cached.aclose)
        for item in chosen:
            started = time.monotonic()
            indexed = await index_set(owner, database, cached, item)
            results.append(await evaluate(database, indexed, item, modes, judge))
            gains = ", ".join(f"{mode} {100 * found.mean('R@5'):.1f}" for mode, found in results[-1].modes.items())
            typer.echo(f"{item.label}: R@5 {gains} ({time.monotonic() - started:.0f} s)")
            sys.stdout.flush()  # whoever redirects it wants to see how far it is
    return results


@asynccontextmanager
async def _databases() -> AsyncIterator[tuple[Database, Database]]:
    """A migrated database of its own, opened as the owner and as the role that serves requests."""
    folder = stack_home() / f"bench-{os.getpid()}"
    create_folder(folder)
    servers = Servers(folder, for_tests=True)
    servers.start()
    try:
        urls = await provision_database(servers.postgres.url(), "bench", servers.secrets.roles)
        # Alembic runs an event loop of its own.
        await asyncio.to_thread(upgrade_schema, urls.owner)
        owner, database = Database(urls.owner, pool_size=1), Database(urls.app, pool_size=2)
        yield owner, database
        await owner.close()
        await database.close()
    finally:
        servers.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    typer.run(main)
