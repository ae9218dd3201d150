"""Creates what the migrations stand on: the three roles, the database and the vector extension. Run by an administrator.

The names of the roles are fixed, for migrations grant to them by name.
"""

from dataclasses import dataclass

import asyncpg
from sqlalchemy.engine import make_url

from app.db.policies import APP_ROLE, ENGINE_ROLE, GRAPH_ROLE, OWNER_ROLE
from app.errors import Conflict


class RoleTooPowerful(Conflict):
    """A runtime role could step around row level security."""

    code = "role_too_powerful"


class AgeMissing(Conflict):
    """The server cannot hold graphs in Apache AGE."""

    code = "age_missing"


@dataclass(frozen=True)
class RolePasswords:
    """Passwords of the three roles, in clear."""

    owner: str
    app: str
    engine: str


@dataclass(frozen=True)
class DatabaseUrls:
    """One URL per role for the same database, passwords included."""

    owner: str
    app: str
    engine: str


async def provision_database(admin_url: str, name: str, passwords: RolePasswords, *, age: bool = False) -> DatabaseUrls:
    """Create roles, database and extension as far as they are missing, and set the roles' passwords.

    `admin_url` names a role that may create roles and databases: a superuser, or a managed service's administrator.
    With `age` the database can hold graphs in Apache AGE, whose extension only a superuser may create.
    Raises RoleTooPowerful if a role exists as superuser or may bypass row level security, and AgeMissing.
    """
    connection = await asyncpg.connect(_plain(admin_url))
    try:
        for role, password in (
            (OWNER_ROLE, passwords.owner),
            (APP_ROLE, passwords.app),
            (ENGINE_ROLE, passwords.engine),
        ):
            await _provision_role(connection, role, password)
        if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
            # An administrator that is no superuser may give a database only to a role that it belongs to.
            await _execute(connection, "GRANT %I TO CURRENT_USER", OWNER_ROLE)
            await _execute(connection, "CREATE DATABASE %I OWNER %I", name, OWNER_ROLE)
        await _grant_access(connection, name)
    finally:
        await connection.close()
    await _create_extensions(admin_url, name, age=age)
    return database_urls(admin_url, name, passwords)


async def clone_database(admin_url: str, template: str, name: str) -> None:
    """Replace database `name` by a copy of `template`, which nobody may be connected to."""
    connection = await asyncpg.connect(_plain(admin_url))
    try:
        await _execute(connection, "DROP DATABASE IF EXISTS %I WITH (FORCE)", name)
        await _execute(connection, "CREATE DATABASE %I OWNER %I TEMPLATE %I", name, OWNER_ROLE, template)
        await _grant_access(connection, name)
    finally:
        await connection.close()


async def drop_database(admin_url: str, name: str) -> None:
    """Remove a database and cut off whoever is connected to it."""
    connection = await asyncpg.connect(_plain(admin_url))
    try:
        await _execute(connection, "DROP DATABASE IF EXISTS %I WITH (FORCE)", name)
    finally:
        await connection.close()


def database_urls(admin_url: str, name: str, passwords: RolePasswords) -> DatabaseUrls:
    """The URLs of the three roles on the server of `admin_url`."""

    def url(role: str, password: str) -> str:
        parts = make_url(admin_url).set(drivername="postgresql", username=role, password=password, database=name)
        return parts.render_as_string(hide_password=False)

    return DatabaseUrls(
        url(OWNER_ROLE, passwords.owner), url(APP_ROLE, passwords.app), url(ENGINE_ROLE, passwords.engine)
    )


async def _provision_role(connection: "asyncpg.Connection", role: str, password: str) -> None:
    found = await connection.fetchrow("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = $1", role)
    if found is None:
        await _execute(connection, "CREATE ROLE %I LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE", role)
    elif found["rolsuper"] or found["rolbypassrls"]:
        raise RoleTooPowerful(f"role {role} is a superuser or may bypass row level security; take that away first")
    await _execute(connection, "ALTER ROLE %I PASSWORD %L", role, password)


async def _grant_access(connection: "asyncpg.Connection", name: str) -> None:
    # Privileges of a database are not copied from a template.
    await _execute(connection, "REVOKE ALL ON DATABASE %I FROM PUBLIC", name)
    for role in (APP_ROLE, ENGINE_ROLE):
        await _execute(connection, "GRANT CONNECT ON DATABASE %I TO %I", name, role)


async def _create_extensions(admin_url: str, name: str, *, age: bool) -> None:
    url = make_url(admin_url).set(drivername="postgresql", database=name)
    connection = await asyncpg.connect(url.render_as_string(hide_password=False))
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        if age:
            await _prepare_age(connection, name)
    finally:
        await connection.close()


async def _prepare_age(connection: "asyncpg.Connection", name: str) -> None:
    """Apache AGE, and what lets the owner's functions make a graph with a role of its own for a workspace."""
    if not await connection.fetchval("SELECT 1 FROM pg_available_extensions WHERE name = 'age'"):
        raise AgeMissing("the server has no Apache AGE; install its package and start the server again")
    await connection.execute("CREATE EXTENSION IF NOT EXISTS age")
    if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", GRAPH_ROLE):
        await _execute(connection, "CREATE ROLE %I NOLOGIN", GRAPH_ROLE)
    await _execute(connection, "ALTER ROLE %I CREATEROLE", OWNER_ROLE)
    await _execute(connection, "GRANT %I TO %I WITH ADMIN TRUE, INHERIT FALSE, SET FALSE", GRAPH_ROLE, OWNER_ROLE)
    for role in (GRAPH_ROLE, OWNER_ROLE):
        await _execute(connection, "GRANT USAGE ON SCHEMA ag_catalog TO %I", role)
        await _execute(connection, "GRANT SELECT ON ag_catalog.ag_graph, ag_catalog.ag_label TO %I", role)
    await _execute(connection, "GRANT CREATE ON DATABASE %I TO %I", name, OWNER_ROLE)


async def _execute(connection: "asyncpg.Connection", statement: str, *arguments: str) -> None:
    """Run a utility statement, which takes no parameters: the server itself quotes the names (%I) and texts (%L)."""
    placeholders = ", ".join(f"${number + 2}::text" for number in range(len(arguments)))
    await connection.execute(await connection.fetchval(f"SELECT format($1, {placeholders})", statement, *arguments))


def _plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
