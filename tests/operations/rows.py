"""All rows of a database, as they can be compared with those of another one."""

import asyncpg

COLUMNS = """
SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'alembic_version'
"""


async def columns_of(url: str) -> set[tuple[str, str]]:
    """(table, column) of every table of ours."""
    connection = await asyncpg.connect(url)
    try:
        return {(row[0], row[1]) for row in await connection.fetch(COLUMNS)}
    finally:
        await connection.close()


async def rows_of(url: str, columns: set[tuple[str, str]]) -> dict[str, list[str]]:
    """The rows of each table with these columns, as texts in order; tables without rows are left out."""
    connection = await asyncpg.connect(url)
    try:
        found = {}
        for table in sorted({table for table, _ in columns}):
            names = ", ".join(f'"{column}"' for owner, column in sorted(columns) if owner == table)
            query = f'SELECT row({names})::text FROM "{table}" ORDER BY 1'
            if rows := [row[0] for row in await connection.fetch(query)]:
                found[table] = rows
        return found
    finally:
        await connection.close()
