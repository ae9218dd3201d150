"""Rules of the house that no linter knows: who commits, who queries, who may import what."""

import re
from pathlib import Path

from app.jobs import ALL_JOBS, Job
from tests.architecture.sources import calls, imports, python_files, strings, swallowed_errors

CODE = ("app", "workers")
COMMITTER = Path("app/db/session.py")
# The graph engine's storages have a unit of work of their own, whose end is called a commit too.
ENGINE_UNIT = Path("app/retrieval/lightrag")
QUERY_FILES = {"repository.py", "store.py"}
# Beside the repositories: the folders that are nothing but queries, and provisioning, which has no tables yet.
QUERY_FOLDERS = (
    Path("app/db"), Path("app/retrieval/store"), Path("app/retrieval/lightrag/storage"), Path("app/retrieval/lightrag/age"),
)  # fmt: skip
SQL = re.compile(r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s", re.IGNORECASE)
TENANT_SETTERS = (Path("app/db"), Path("app/retrieval/lightrag"))
FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager", "misc"}
# The outermost handler of each process: what nobody foresaw is logged there, and the process goes on or ends.
OUTERMOST = {Path("app/aside.py"), Path("app/api/middleware.py"), Path("app/parsing/child.py"), Path("workers/task.py")}


def may_query(path: Path) -> bool:
    return (
        path.name in QUERY_FILES
        or path.stem.endswith(("_repository", "_store"))
        or any(path.is_relative_to(folder) for folder in QUERY_FOLDERS)
    )


def test_only_the_unit_of_work_commits() -> None:
    found = [
        place
        for path in python_files(*CODE)
        if path != COMMITTER and not path.is_relative_to(ENGINE_UNIT)
        for place in calls(path, "commit")
    ]
    assert found == []


def test_queries_are_written_in_repositories_and_stores_only() -> None:
    found = [place for path in python_files(*CODE) if not may_query(path) for place in calls(path, "select")]
    assert found == []


def test_sql_text_stands_in_repositories_and_stores_only() -> None:
    found = [
        f"{path}:{line} {text.strip()[:50]}"
        for path in python_files(*CODE)
        if not may_query(path)
        for line, text in strings(path)
        if SQL.match(text) and text.isascii() and len(text.split()) > 3
    ]
    assert found == []


def test_the_tenant_of_a_transaction_is_set_in_one_place() -> None:
    found = [
        f"{path}:{line}"
        for path in python_files(*CODE)
        if not any(path.is_relative_to(folder) for folder in TENANT_SETTERS)
        for line, text in strings(path)
        if "set_config(" in text
    ]
    assert found == []


def test_only_the_adapter_imports_lightrag() -> None:
    found = [
        str(path)
        for path in python_files(*CODE, "migrations", "demo")
        if not path.is_relative_to("app/retrieval/lightrag")
        and any(name.split(".")[0] == "lightrag" for name in imports(path))
    ]
    assert found == []


def test_modules_are_named_by_role() -> None:
    found = [str(path) for path in python_files(*CODE) if FORBIDDEN_NAMES & {*path.parts, path.stem}]
    assert found == []


def test_errors_are_swallowed_at_the_edge_of_a_process_only() -> None:
    found = [place for path in python_files(*CODE) if path not in OUTERMOST for place in swallowed_errors(path)]
    assert found == []


def test_every_job_is_registered_under_a_name_of_its_own() -> None:
    assert set(Job.__subclasses__()) == set(ALL_JOBS)
    assert len({job.name for job in ALL_JOBS}) == len(ALL_JOBS)
