"""What a migration may not do to a table that the previous release is still using: the rules of docs/operations.md.

A statement on a table that the same migration makes may do everything. A migration that needs more says so in a mapping
`ACCEPTED` of the rule's name to the reason, such as the release since which nobody uses what is dropped.
"""

import re
from collections.abc import Iterable

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
    "locks a table": rf"LOCK (?:TABLE )?{TABLE}|CLUSTER|VACUUM FULL",
}
MADE = re.compile(r'CREATE TABLE (?:IF NOT EXISTS )?(?:public\.)?"?(\w+)"?', re.IGNORECASE)
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
    for statement in plain:
        for rule, pattern in RULES.items():
            look = re.search if HOLDERS.match(statement) else re.match
            found = look(rf"\b(?:{_one_table(pattern)})", statement, re.IGNORECASE)
            if found is not None and _table(found) not in made:
                broken.setdefault(rule, statement)
    return broken


def _one_table(pattern: str) -> str:
    """The pattern with its alternatives' names of tables told apart."""
    parts = pattern.split("(?P<table>")
    return parts[0] + "".join(f"(?P<table{number}>{part}" for number, part in enumerate(parts[1:]))


def _table(found: "re.Match[str]") -> str | None:
    return next((name for name in found.groupdict().values() if name), None)
