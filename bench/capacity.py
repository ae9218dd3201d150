"""What a filled database holds for each passage, and what that comes to for many tenants.

    python -m bench.capacity --url postgresql://postgres:…@…/trellis [--tenants 1000] [--passages 10000000]

Run it as the administrator, from whom row level security hides nothing, on a database with some thousand passages at least. Sizes include indexes and TOAST. It reads sizes and counts
and changes nothing. docs/capacity.md reasons from what it prints.
"""

import argparse
import asyncio
from collections import defaultdict
from dataclasses import dataclass

import asyncpg

# What a table is for, by how its name begins; the first that fits.
GROUPS = (
    ("term_postings", "full text"),
    ("concept_postings", "concepts"),
    ("passage_vectors", "vectors"),
    ("passages", "passages"),
    ("lazy_", "passages"),
    ("chunks", "graph"),
    ("lightrag_llm_cache", "extraction cache"),
    ("lightrag_", "graph"),
    ("mentions", "graph"),
    ("entity_", "graph"),
)
TABLES = """
SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes, pg_indexes_size(c.oid) AS index_bytes,
       greatest(c.reltuples, 0)::bigint AS rows
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'public' AND c.relkind = 'r' ORDER BY 2 DESC
"""


@dataclass
class Group:
    bytes: int = 0
    index_bytes: int = 0
    rows: int = 0


def group_of(table: str) -> str:
    return next((group for start, group in GROUPS if table.lower().startswith(start)), "the rest")


async def measure(url: str) -> tuple[dict[str, Group], int, int]:
    """Sizes by group, the number of passages, and the bytes of their texts."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
        groups: dict[str, Group] = defaultdict(Group)
        for row in await connection.fetch(TABLES):
            group = groups[group_of(row["name"])]
            group.bytes += row["bytes"]
            group.index_bytes += row["index_bytes"]
            group.rows += row["rows"]
        async with connection.transaction():
            found = await connection.fetchrow(
                "SELECT coalesce(sum(reltuples), 0)::bigint AS passages FROM pg_class WHERE relname = 'passages'"
            )
            width = await connection.fetchval(
                "SELECT avg_width FROM pg_stats WHERE tablename = 'passages' AND attname = 'text'"
            )
    finally:
        await connection.close()
    if width is None:
        raise SystemExit("this role may not see how long texts are, or there are none: come as the administrator")
    passages = int(found["passages"])
    return groups, passages, passages * int(width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--passages", type=int, default=10_000_000, help="of each tenant")
    arguments = parser.parse_args()
    report(arguments.url, arguments.tenants * arguments.passages)


def report(url: str, wanted: int) -> None:
    """Print what the database of `url` holds for a passage, and what that is for `wanted` passages."""
    groups, passages, text_bytes = asyncio.run(measure(url))
    if passages <= 0:
        raise SystemExit("this database holds no passages")
    scale = wanted / passages
    print(f"{passages:,} passages of {text_bytes / passages:.0f} bytes of text")
    print("| what | bytes a passage | of these indexes | rows a passage | all tenants: rows | all tenants: TB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    total = Group()
    for name, group in sorted(groups.items(), key=lambda item: -item[1].bytes):
        print(_line(name, group, passages, scale))
        total = Group(total.bytes + group.bytes, total.index_bytes + group.index_bytes, total.rows + group.rows)
    print(_line("all", total, passages, scale))


def _line(name: str, group: Group, passages: int, scale: float) -> str:
    each, index, rows = group.bytes / passages, group.index_bytes / passages, group.rows / passages
    return f"| {name} | {each:,.0f} | {index:,.0f} | {rows:,.1f} | {group.rows * scale:,.2g} | {group.bytes * scale / 1e12:,.1f} |"


if __name__ == "__main__":
    main()
