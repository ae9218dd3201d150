"""Everything of a schema that a migration can change, for comparing two of them."""

import asyncio

import asyncpg

SCHEMA = """
SELECT 'column', table_name || '.' || column_name,
       concat_ws(' ', data_type, udt_name, is_nullable, column_default, identity_generation)
  FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'policy', tablename || '.' || policyname, concat_ws(' ', roles::text, cmd, qual, with_check)
  FROM pg_policies WHERE schemaname = 'public'
UNION ALL
SELECT 'table', relname, concat_ws(' ', relkind, relrowsecurity, relforcerowsecurity, relacl::text)
  FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'p')
UNION ALL
SELECT 'function', proname, concat_ws(' ', prosecdef, proacl::text, md5(prosrc))
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prolang <> 13
UNION ALL
SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public'
UNION ALL
SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
"""


def schema(url: str) -> set[tuple[str, str, str]]:
    async def read() -> set[tuple[str, str, str]]:
        connection = await asyncpg.connect(url)
        try:
            return {tuple(row) for row in await connection.fetch(SCHEMA)}
        finally:
            await connection.close()

    return asyncio.run(read())
