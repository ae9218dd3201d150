"""What a migration may not do to a table that the previous release is still using: the rules of docs/operations.md.

A statement on a table that the same migration makes may do everything. A migration that needs more says so in a mapping
`ACCEPTED` of the rule's name to the reason, such as the release since which nobody uses what is dropped.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

TABLE = r'(?:ONLY )?(?:public\.)?"?(?P<table>[\w%]+)"?'
ALTER = rf"ALTER TABLE (?:IF EXISTS )?{TABLE} (?:.*, )?"
# Name of the rule: what breaks it. The running release would break, or everybody would wait.
RULES = {
    "drops": (
        rf"DROP (?:TABLE|FUNCTION|PROCEDURE|INDEX) (?:CONCURRENTLY )?(?:IF EXISTS )?{TABLE}|{ALTER}DROP (?:COLUMN|CONSTRAINT)"
    ),
    "renames": rf"{ALTER}RENAME",
    "changes a type": rf"{ALTER}ALTER (?:COLUMN )?\"?\w+\"? (?:SET DATA )?TYPE",
    "demands a value": rf"{ALTER}ADD (?:COLUMN )?\"?\w+\"? (?!.*DEFAULT).*NOT NULL|{ALTER}ALTER (?:COLUMN )?\"?\w+\"? SET NOT NULL",
    "rewrites": (
        rf"{ALTER}ADD (?:COLUMN )?\"?\w+\"? .*(?:GENERATED|(?:small|big)?serial\b"
        r"|DEFAULT .*\b(?:gen_random_uuid|uuidv\d|uuid_\w+|random|clock_timestamp|nextval)\()"
    ),
    "checks all rows": (
        rf"{ALTER}ADD (?:CONSTRAINT \"?\w+\"? )?(?:CHECK|FOREIGN KEY)(?!.*NOT VALID)"
        rf"|{ALTER}ADD COLUMN \"?\w+\"? .*(?:REFERENCES|CHECK)"
    ),
    "builds an index under a lock": (
        rf"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)(?:.*?) ON {TABLE}"
        rf"|{ALTER}ADD (?:CONSTRAINT \"?\w+\"? )?(?:UNIQUE|PRIMARY KEY|EXCLUDE)(?!.*USING INDEX)"
    ),
    "writes many rows": rf"UPDATE {TABLE} (?:\w+ )?SET|DELETE FROM {TABLE}|TRUNCATE (?:TABLE )?{TABLE}",
    "leaves a broken index": rf"CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?\"?\w+\"? ON {TABLE}",
    "locks a table": rf"LOCK (?:TABLE )?{TABLE}|CLUSTER|VACUUM FULL",
}
MADE = re.compile(r'CREATE TABLE (?:IF NOT EXISTS )?(?:public\.)?"?(\w+)"?', re.IGNORECASE)
# An index that is dropped before it is built, as `app.db.migrating.build_index` does: an earlier attempt may have left it broken.
REBUILT = re.compile(r'DROP INDEX CONCURRENTLY IF EXISTS "?(\w+)"?$', re.IGNORECASE)
BUILT = re.compile(r'CREATE (?:UNIQUE )?INDEX CONCURRENTLY "?(\w+)"? ON', re.IGNORECASE)
# What needs a lock that keeps writers away, however briefly; with two of them held, one of our own transactions that
# takes the same tables in the other order is a deadlock.
SEVERAL = "locks several tables"
LOCKS = re.compile(
    rf"(?:{ALTER}(?!VALIDATE)|CREATE (?:CONSTRAINT )?TRIGGER .*? ON {TABLE.replace('<table>', '<trigger>')}"
    rf"|(?:CREATE|ALTER|DROP) POLICY .*? ON {TABLE.replace('<table>', '<policy>')})(?P<rest>.*)",
    re.IGNORECASE,
)
REFERENCES = re.compile(r'REFERENCES (?:public\.)?"?(\w+)"?', re.IGNORECASE)
# Bodies of functions are run later, by those who call them; that of DO is run at once.
FUNCTION = re.compile(r"\s*CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE)\b", re.IGNORECASE)
BODY = re.compile(r"(\$\w*\$).*?\1", re.DOTALL)
# In these a statement that breaks a rule stands further on.
HOLDERS = re.compile(r"DO\b|WITH\b", re.IGNORECASE)


def broken_rules(statements: Iterable[str]) -> dict[str, str]:
    """The rules that the statements of one migration break, each with the first statement that does."""
    plain = [
        " ".join((BODY.sub("''", statement) if FUNCTION.match(statement) else statement).split())
        for statement in statements
    ]
    made = {name for statement in plain for name in MADE.findall(statement)} | {"alembic_version"}
    broken: dict[str, str] = {}
    locked: set[str] = set()
    rebuilding = _rebuilding(plain)
    for number, statement in enumerate(plain):
        locked |= _locked(statement) - made
        if len(locked) > 1:
            broken.setdefault(SEVERAL, statement)
        if number in rebuilding:
            continue
        for rule, pattern in RULES.items():
            look = re.search if HOLDERS.match(statement) else re.match
            found = look(rf"\b(?:{_one_table(pattern)})", statement, re.IGNORECASE)
            if found is not None and _table(found) not in made:
                broken.setdefault(rule, statement)
    return broken


def _locked(statement: str) -> set[str]:
    """The tables that writers are kept away from until the migration's end."""
    found = LOCKS.match(statement)
    if found is None:
        return set()
    names = {found[group] for group in ("table", "trigger", "policy") if found[group]}
    return names | set(REFERENCES.findall(found["rest"]))


def _rebuilding(statements: Sequence[str]) -> set[int]:
    """The places of statements that build an index anew, two by two."""
    places: set[int] = set()
    for number, (drop, create) in enumerate(pairwise(statements)):
        dropped, built = REBUILT.match(drop), BUILT.match(create)
        if dropped is not None and built is not None and dropped[1] == built[1]:
            places |= {number, number + 1}
    return places


def _one_table(pattern: str) -> str:
    """The pattern with its alternatives' names of tables told apart."""
    parts = pattern.split("(?P<table>")
    return parts[0] + "".join(f"(?P<table{number}>{part}" for number, part in enumerate(parts[1:]))


def _table(found: "re.Match[str]") -> str | None:
    return next((name for name in found.groupdict().values() if name), None)
