#!/bin/sh
# The secrets of compose.hosts.yaml, in secrets/ beside it. Nothing is written over: it ends where the folder is there.
set -eu
cd "$(dirname "$0")"
mkdir -m 700 secrets
cd secrets
for name in database-password secret-key forget-key; do
  od -An -N32 -tx1 /dev/urandom | tr -d ' \n' > "$name"
done
for host in postgres replica; do
  echo "postgres://memoryhub:$(cat database-password)@$host/memoryhub" > "$host-url"
done
mv postgres-url database-url
chmod 444 ./*  # the containers' own users read them; on this machine nobody else enters the folder
