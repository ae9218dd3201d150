"""LightRAG's own server, installed into an environment of its own and set up as well as its documentation allows."""

import asyncio
import gzip
import hashlib
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from app.devstack.folders import create_folder, stack_home
from app.devstack.postgres import EmbeddedPostgres, free_port
from app.devstack.processes import MARK, Child, ProcessFailed, log_tail, start_child
from bench.sidebyside.corpus import Document
from bench.sidebyside.model import CALLS_AT_ONCE, DIMENSION
from bench.sidebyside.rows import RowFailed
from bench.sidebyside.statements import StatementCounter

VERSION = "1.5.7"
# The two drivers are what the server would install by itself, at its first start.
REQUIREMENTS = (f"lightrag-hku[api]=={VERSION}", "asyncpg", "pgvector")
DATABASE = "lightrag"
DOCUMENTS_AT_ONCE = 8
START_SECONDS = 120
# Each question is work for the system that is measured.
POLL_SECONDS = 2.0
# Where tiktoken looks for its vocabulary before it fetches it from there, and the sum it demands.
VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
UNFINISHED = ("pending", "parsing", "analyzing", "processing", "preprocessed")

Say = Callable[[str], None]


def install_peer(say: Say) -> Path:
    """The environment's folder, made on first use and kept between runs."""
    folder = stack_home() / "bench" / f"lightrag-{VERSION}"
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text() == " ".join(REQUIREMENTS):
        return folder
    started = time.monotonic()
    create_folder(folder.parent)
    say(f"installing {REQUIREMENTS[0]} into {folder} (kept between runs)")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    uv = Path(sys.executable).with_name("uv")
    fast = [str(uv), "pip", "install", "--system-certs", "--quiet", "--python", python, *REQUIREMENTS]
    if subprocess.run(fast, capture_output=True).returncode != 0:
        say("uv could not install it, trying pip, which takes some minutes")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-input", *REQUIREMENTS], check=True)
    fill_vocabulary(folder / "tiktoken")
    stamp.write_text(" ".join(REQUIREMENTS))
    say(f"installed in {time.monotonic() - started:.0f} s; tiktoken's own vocabulary was taken from bpe-openai's wheel")
    return folder


def fill_vocabulary(folder: Path) -> None:
    """Put the vocabulary, byte for byte the published one, where tiktoken caches its downloads."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = files("bpe_openai") / "data" / "o200k_base.tiktoken.gz"
    name = hashlib.sha1(VOCABULARY.encode(), usedforsecurity=False).hexdigest()
    (folder / name).write_bytes(gzip.decompress(packed.read_bytes()))


class PeerServer:
    """One LightRAG server on one embedded Postgres. Use as a context manager."""

    def __init__(self, environment: Path, folder: Path, model_url: str) -> None:
        self.environment = environment
        self.folder = folder
        self.model_url = model_url
        self.postgres = EmbeddedPostgres(folder, password=secrets.token_urlsafe(16))
        self.port = free_port()
        self.children: list[Child] = []
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=300)

    def __enter__(self) -> "PeerServer":
        StatementCounter.preload(self.postgres)
        try:
            self.children.append(self.postgres.start())
            asyncio.run(_create_database(self.postgres.url()))
            self.children.append(self._start_server())
            self._wait_until_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        while self.children:
            self.children.pop().stop()

    @property
    def process_id(self) -> int:
        return self.children[1].process.pid

    @property
    def postgres_id(self) -> int:
        return self.children[0].process.pid

    def ingest(self, documents: Sequence[Document]) -> None:
        """Insert the texts in one request and wait for all. Raises RowFailed."""
        wanted = self._counts().get("processed", 0) + len(documents)
        body = {"texts": [each.text for each in documents], "file_sources": [each.name for each in documents]}
        self._require(self.http.post("/documents/texts", json=body))
        while (counts := self._counts()).get("processed", 0) < wanted:
            if counts.get("failed", 0) and not any(counts.get(status, 0) for status in UNFINISHED):
                raise RowFailed(f"LightRAG did not process all documents: {counts}")
            if self.children[1].ended():
                raise self.children[1].failure()
            time.sleep(POLL_SECONDS)

    def _counts(self) -> dict[str, int]:
        answer: dict[str, Any] = self._require(self.http.get("/documents/status_counts"))
        return {str(status).lower(): int(count) for status, count in answer["status_counts"].items()}

    def _require(self, response: httpx.Response) -> Any:
        if response.status_code != httpx.codes.OK:
            raise RowFailed(f"{response.request.url} answered {response.status_code}: {response.text[:500]}")
        return response.json()

    def _start_server(self) -> Child:
        work = self.folder / "work"
        create_folder(work)
        return start_child(
            "lightrag",
            [str(self.environment / "bin" / "lightrag-server")],
            log=self.folder / "logs" / "lightrag.log",
            environment=self._settings(work),
            folder=work,
        )

    def _settings(self, work: Path) -> dict[str, str]:
        return {
            "PATH": f"{self.environment / 'bin'}:/usr/bin:/bin",
            "HOME": str(work),
            MARK: str(self.folder),
            "TIKTOKEN_CACHE_DIR": str(self.environment / "tiktoken"),
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "WORKING_DIR": str(work / "rag"),
            "INPUT_DIR": str(work / "inputs"),
            "LOG_LEVEL": "WARNING",
            "LIGHTRAG_KV_STORAGE": "PGKVStorage",
            "LIGHTRAG_VECTOR_STORAGE": "PGVectorStorage",
            "LIGHTRAG_DOC_STATUS_STORAGE": "PGDocStatusStorage",
            "LIGHTRAG_GRAPH_STORAGE": "PGTableGraphStorage",
            "POSTGRES_HOST": "127.0.0.1",
            "POSTGRES_PORT": str(self.postgres.port),
            "POSTGRES_USER": "postgres",
            "POSTGRES_PASSWORD": self.postgres.password,
            "POSTGRES_DATABASE": DATABASE,
            "LLM_BINDING": "openai",
            "LLM_BINDING_HOST": self.model_url,
            "LLM_BINDING_API_KEY": "none",
            "LLM_MODEL": "stub",
            "EMBEDDING_BINDING": "openai",
            "EMBEDDING_BINDING_HOST": self.model_url,
            "EMBEDDING_BINDING_API_KEY": "none",
            "EMBEDDING_MODEL": "stub",
            "EMBEDDING_DIM": str(DIMENSION),
            "MAX_ASYNC": str(CALLS_AT_ONCE),
            "EMBEDDING_FUNC_MAX_ASYNC": str(CALLS_AT_ONCE),
            # As many texts a request as Trellis sends.
            "EMBEDDING_BATCH_NUM": "32",
            "MAX_PARALLEL_INSERT": str(DOCUMENTS_AT_ONCE),
            "MAX_GLEANING": "0",
            # Without overlap, as Trellis cuts, there is less text to extract.
            "CHUNK_SIZE": "1200",
            "CHUNK_OVERLAP_SIZE": "0",
        }

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        server = self.children[1]
        while True:
            try:
                if self.http.get("/health").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            if server.ended():
                raise server.failure()
            if time.monotonic() > deadline:
                raise ProcessFailed(f"LightRAG's server was not ready in {START_SECONDS} s:\n{log_tail(server.log)}")
            time.sleep(POLL_SECONDS)


async def _create_database(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f'CREATE DATABASE "{DATABASE}"')
    finally:
        await connection.close()
