#!/usr/bin/env bash
# PostgreSQL on a full disk.
. "$(dirname "$0")/full_disk.sh"
kind=postgres
. "$(dirname "$0")/postgres.sh"

on_small_disk 100M
backends=("${postgres_url[server]}" "${postgres_url[server]/#postgres/postgres-row}")
tables_need_room 'its disk is full' "${backends[@]}"
for backend in "${backends[@]}"; do
  a_lock_needs_none "$backend"
  a_key_needs_room "$backend" "'none'" 500 'No space left' 'its disk is full'
done
