"""`make bench-storage`: what a byte of text becomes in Postgres, by table, once both engines have taken it in.

    python -m bench.storage [--documents 60] [--data folder] [--write docs/bench-storage.md]

Documents are those of `make bench-ingest`, and so is the stub model. What autovacuum would give back is given back first.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from app.devstack.run_folders import close_run_folder, open_run_folder
from bench.sidebyside.corpus import DEFAULT_FOLDER, Document, load_documents
from bench.sidebyside.ingest import DOCUMENTS, PASSAGES_EACH
from bench.sidebyside.model import bench_model
from bench.sidebyside.product import DATABASE, Product

PAGE = Path("docs/bench-storage.md")
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"
# Tables below this part of the text are summed up.
LEAST_SHOWN = 0.25

# Partitions count as their table, long values that are kept out of line as the rows they belong to.
SIZES = """
SELECT coalesce(parent.relname, c.relname) AS name, sum(pg_table_size(c.oid)) AS rows,
       sum(pg_indexes_size(c.oid)) AS indexes, sum(greatest(c.reltuples, 0))::bigint AS count
  FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
 GROUP BY 1
"""
INDEXES = """
SELECT regexp_replace(pg_get_indexdef(i.oid), '^.* ON (ONLY )?', '') AS definition, pg_relation_size(i.oid) AS bytes
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid AND c.relkind = 'r'
 WHERE c.relnamespace = 'public'::regnamespace ORDER BY 2 DESC LIMIT 12
"""


@dataclass(frozen=True)
class TableSize:
    name: str
    rows: int  # bytes, as all but the last
    indexes: int
    count: int

    @property
    def total(self) -> int:
        return self.rows + self.indexes


async def read_sizes(url: str) -> tuple[list[TableSize], list[tuple[str, int]]]:
    """Tables and the largest indexes, largest first, after a vacuum."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE")
        found: Sequence[Any] = await connection.fetch(SIZES)
        tables = [TableSize(row["name"], int(row["rows"]), int(row["indexes"]), row["count"]) for row in found]
        indexes = [(row["definition"], row["bytes"]) for row in await connection.fetch(INDEXES)]
    finally:
        await connection.close()
    return sorted(tables, key=lambda table: -table.total), indexes


def render(documents: Sequence[Document], tables: Sequence[TableSize], indexes: Sequence[tuple[str, int]]) -> str:
    size = sum(document.size for document in documents)
    total = sum(table.total for table in tables)
    lines = [
        f"{len(documents)} documents of {PASSAGES_EACH} passages, {size:,} bytes of text, both engines.",
        f"**{total / size:.1f} bytes are kept for a byte of text**: {sum(t.rows for t in tables) / size:.1f} in rows,"
        f" {sum(t.indexes for t in tables) / size:.1f} in indexes.",
        "",
        "| table | rows | bytes a row | indexes | together |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    small = [table for table in tables if table.total < LEAST_SHOWN * size]
    for table in tables:
        if table not in small:
            each = f"{table.total / table.count:,.0f}" if table.count else ""
            cells = [f"{part / size:.2f}" for part in (table.rows, table.indexes, table.total)]
            lines.append(f"| {table.name} | {cells[0]} | {each} | {cells[1]} | {cells[2]} |")
    lines.append(f"| {len(small)} others | | | | {sum(table.total for table in small) / size:.2f} |")
    lines += ["", "| largest indexes | bytes a byte of text |", "| --- | ---: |"]
    lines += [f"| `{definition}` | {found / size:.2f} |" for definition, found in indexes]
    return "\n".join(lines)


def measure(documents: Sequence[Document]) -> str:
    folder = open_run_folder("bench-runs")
    try:
        with bench_model() as model, Product(folder / "product", model.base_url) as product:
            product.add_workspaces(1)
            product.ingest(documents)
            tables, indexes = asyncio.run(read_sizes(product.servers.postgres.url(DATABASE)))
    finally:
        close_run_folder(folder)
    return render(documents, tables, indexes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="folder with the evaluation sets")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--write", type=Path, help=f"put the tables into this file ({PAGE}), between its marks")
    arguments = parser.parse_args()
    figures = measure(load_documents(arguments.data, arguments.documents, PASSAGES_EACH))
    print(figures)
    if arguments.write:
        before, rest = arguments.write.read_text().split(BEGIN)
        arguments.write.write_text(before + BEGIN + figures + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
