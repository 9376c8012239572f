#!/bin/sh
# Run once, by PostgreSQL's image when it makes the database: a replica may follow it, and finds what it has yet to read.
echo "host replication memoryhub all scram-sha-256" >> "$PGDATA/pg_hba.conf"
psql --username memoryhub --dbname memoryhub --command "SELECT pg_create_physical_replication_slot('replica')"
