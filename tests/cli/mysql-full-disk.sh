#!/usr/bin/env bash
# MySQL and MariaDB on a full disk.
# ctest: longer in soak
. "$(dirname "$0")/full_disk.sh"
kind=mysql
. "$(dirname "$0")/mysql.sh"

on_small_disk 40M
backends=("${mysql_url[server]}")
[[ -z ${TEST_SOAK-} ]] || backends+=("${mysql_url[server]/#mysql/mysql-row}" "${mysql_url[server]/#mysql/mysql-version}")
tables_need_room 'it cannot write a file (' "${backends[@]}"
for backend in "${backends[@]}"; do
  a_lock_needs_none "$backend"
  a_key_needs_room "$backend" 99 2000 'is full' 'its disk or table space is full'
done
