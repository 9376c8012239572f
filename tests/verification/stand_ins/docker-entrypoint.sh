#!/bin/sh
# What the entry point of PostgreSQL's own image does, as far as the compose files rely on it.
set -e
[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA"
  chown -R postgres "$PGDATA"
  chmod 700 "$PGDATA"
  exec setpriv --reuid postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "${POSTGRES_PASSWORD:-$(cat "$POSTGRES_PASSWORD_FILE")}" > /tmp/password
  initdb --username "$POSTGRES_USER" --pwfile /tmp/password --encoding UTF8 --locale C.UTF-8
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait -o "-c listen_addresses=''" start
  createdb --username "$POSTGRES_USER" "$POSTGRES_DB"
  for script in /docker-entrypoint-initdb.d/*.sh; do
    [ ! -f "$script" ] || . "$script"
  done
  pg_ctl --wait stop
fi
exec "$@" -c listen_addresses="*"
