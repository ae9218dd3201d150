#!/bin/sh
# Makes a cluster in $PGDATA if there is none, and becomes Postgres. POSTGRES_PASSWORD is the administrator's, read the
# first time only; everybody logs in with a password, over TCP and the socket alike.
set -eu
if [ "${1:-}" != postgres ]; then exec "$@"; fi
shift
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_PASSWORD:?set the administrator password of the new cluster}"
    # Elsewhere first: one that was cut off half way is not taken for a cluster.
    draft="$PGDATA.new"
    rm -rf "$draft"
    mkdir -p "$(dirname "$PGDATA")"
    umask 077
    printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
    initdb --pgdata="$draft" --username=postgres --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 \
        --locale-provider=builtin --locale=C.UTF-8 --data-checksums
    rm /tmp/password
    printf 'host all all all scram-sha-256\nhost replication all all scram-sha-256\n' >>"$draft/pg_hba.conf"
    sync
    mv "$draft" "$PGDATA"
fi
unset POSTGRES_PASSWORD
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp -c jit=off "$@"
