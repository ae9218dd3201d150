"""New migrations let the previous release go on working, and nobody wait for long."""

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Engine, event

from app.db.schema import alembic_config, upgrade_schema
from tests.migrations.rules import RULES, SEVERAL, broken_rules

# The newest one before the rules held: nothing was released with an older schema.
LAST_WITHOUT_RULES = "0041"


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("DROP TABLE documents", "drops"),
        ("ALTER TABLE documents DROP COLUMN title", "drops"),
        ("ALTER TABLE documents RENAME title TO name", "renames"),
        ("ALTER TABLE documents ALTER COLUMN title TYPE varchar(20)", "changes a type"),
        ("ALTER TABLE documents ADD COLUMN a integer NOT NULL", "demands a value"),
        ("ALTER TABLE documents ALTER COLUMN title SET NOT NULL", "demands a value"),
        ("ALTER TABLE documents ADD CONSTRAINT c CHECK (a > 0)", "checks all rows"),
        ("ALTER TABLE documents ADD CONSTRAINT c FOREIGN KEY(a) REFERENCES documents (id)", "checks all rows"),
        ("CREATE INDEX i ON documents (title)", "builds an index under a lock"),
        ("CREATE UNIQUE INDEX i ON documents (title)", "builds an index under a lock"),
        ("ALTER TABLE documents ADD CONSTRAINT c UNIQUE (title)", "builds an index under a lock"),
        ("UPDATE documents SET a = 1", "writes many rows"),
        ("DROP INDEX documents", "drops"),
        ("DROP FUNCTION documents(uuid)", "drops"),
        ("DO $$ BEGIN EXECUTE format('DROP INDEX %I', 'documents'); END $$", "drops"),
        ("DO $$ BEGIN UPDATE documents SET a = 1; END $$", "writes many rows"),
        ("WITH x AS (SELECT 1) UPDATE documents SET a = 1", "writes many rows"),
        ("ALTER TABLE documents ADD COLUMN a uuid DEFAULT gen_random_uuid() NOT NULL", "rewrites"),
        ("ALTER TABLE documents ADD COLUMN a text GENERATED ALWAYS AS (b || c) STORED", "rewrites"),
        ("ALTER TABLE documents ADD COLUMN a uuid REFERENCES documents (id)", "checks all rows"),
        ("LOCK TABLE documents IN EXCLUSIVE MODE", "locks a table"),
        ("CREATE INDEX CONCURRENTLY i ON documents (title)", "leaves a broken index"),
        ("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON documents (title)", "leaves a broken index"),
    ],
)
def test_a_statement_that_breaks_a_rule_is_found(statement: str, rule: str) -> None:
    assert list(broken_rules([statement])) == [rule]
    if "%I" not in statement:
        assert broken_rules(["CREATE TABLE documents (id uuid)", "CREATE TABLE blobs (id uuid)", statement]) == {}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE documents ADD COLUMN a integer",
        "ALTER TABLE documents ADD COLUMN a integer DEFAULT 0 NOT NULL",
        "ALTER TABLE documents ADD CONSTRAINT c CHECK (a > 0) NOT VALID",
        "ALTER TABLE documents VALIDATE CONSTRAINT c",
        "ALTER TABLE documents ADD CONSTRAINT c UNIQUE USING INDEX i",
        "ALTER TABLE documents ADD COLUMN a timestamptz DEFAULT now() NOT NULL",
        "CREATE POLICY p ON documents FOR UPDATE USING (true)",
        "DO $$ BEGIN GRANT UPDATE ON documents TO trellis_app; END $$",
        "CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE sql AS $$ UPDATE documents SET a = 1 $$",
        "UPDATE alembic_version SET version_num='0099'",
    ],
)
def test_what_lets_others_go_on_is_allowed(statement: str) -> None:
    assert broken_rules([statement]) == {}


def test_an_index_that_is_dropped_before_it_is_built_is_allowed() -> None:
    drop, create = 'DROP INDEX CONCURRENTLY IF EXISTS "i"', 'CREATE INDEX CONCURRENTLY "i" ON documents (title)'
    assert broken_rules([drop, create]) == {}
    assert broken_rules([create, drop]).keys() == {"leaves a broken index", "drops"}
    assert broken_rules([drop.replace("i", "j"), create]).keys() == {"leaves a broken index", "drops"}


@pytest.mark.parametrize(
    "second",
    [
        "ALTER TABLE blobs ADD COLUMN a integer",
        "CREATE TRIGGER t BEFORE INSERT ON blobs FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE POLICY p ON blobs USING (true)",
        "ALTER TABLE documents ADD CONSTRAINT c FOREIGN KEY(a) REFERENCES blobs (id) NOT VALID",
    ],
)
def test_tables_in_use_are_locked_one_by_one(second: str) -> None:
    first = "ALTER TABLE documents ADD COLUMN a integer"
    assert broken_rules([first, second]) == {SEVERAL: second}
    assert broken_rules([first]) == {}
    assert broken_rules(["CREATE TABLE blobs (id uuid)", first, second]) == {}
    validate = "ALTER TABLE blobs VALIDATE CONSTRAINT c"
    assert broken_rules([first, validate]) == {}


def test_new_migrations_keep_the_rules(empty_database: str) -> None:
    scripts = ScriptDirectory.from_config(alembic_config(empty_database))
    upgrade_schema(empty_database, LAST_WITHOUT_RULES)
    new = [*scripts.iterate_revisions("head", LAST_WITHOUT_RULES)][::-1]
    for script in new:
        with statements() as executed:
            upgrade_schema(empty_database, script.revision)
        broken, accepted = broken_rules(executed), accepted_by(script)
        assert {rule: text for rule, text in broken.items() if rule not in accepted} == {}, script.path
        assert accepted.keys() <= broken.keys(), f"{script.path} accepts what it does not do"


@contextmanager
def statements() -> Iterator[list[str]]:
    """Everything that is executed within."""
    executed: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        executed.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield executed
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def accepted_by(script: Script) -> Mapping[str, str]:
    """The rules that a migration says it has to break, with its reasons."""
    spec = importlib.util.spec_from_file_location("migration", Path(script.path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    accepted: dict[str, str] = getattr(module, "ACCEPTED", {})
    assert accepted.keys() <= RULES.keys() | {SEVERAL}
    return accepted
