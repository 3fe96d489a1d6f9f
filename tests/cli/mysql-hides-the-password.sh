#!/usr/bin/env bash
# A password for MySQL stays where it was put: see passwords.sh.
# ctest: cost 20
# ctest: longer in soak
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
. "$(dirname "$0")/passwords.sh"

cd "$tmp"
start_mysql a
sql a "SET PASSWORD FOR app@'%' = PASSWORD('$secret')"
records() { sql a 'SELECT * FROM dlock_keys; SELECT * FROM dlock_locks'; }
methods=(table)
[[ -z ${TEST_SOAK-} ]] || methods+=(row version)
for method in "${methods[@]}"; do
  hides_password "mysql-$method://app:PASSWORD@SERVER/test" "mysql-$method://app@SERVER/test" \
    "127.0.0.1:${mysql_port[a]}" records
done
hides_in_bad_url "mysql://u:$secret@h:99999/x" "mysql://u:$secret@127.0.0.1:1" "mysql://u:$secret@a b/x" \
  "mysql://u:$secret@h/x?tls=maybe" "mysql://u:$secret@127.0.0.1:1/x"
