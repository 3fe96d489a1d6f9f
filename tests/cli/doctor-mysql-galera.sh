#!/usr/bin/env bash
# On a Galera cluster dlock doctor says that mysql and mysql-row do not work there, and tries mysql-version.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
. "$(dirname "$0")/doctor.sh"
cd "$tmp"
unset DLOCK_BACKEND
export DLOCK_PASSWORD_FILE=$mysql_password_file
provider=/usr/lib/galera/libgalera_smm.so
[[ -r $provider ]] || skip "Galera is not installed"

cluster='' ist=''
reserve_port cluster
reserve_port ist
start_mysql node wsrep_on=ON wsrep_provider=$provider wsrep_cluster_address=gcomm:// \
  wsrep_node_address="127.0.0.1:$cluster" binlog_format=ROW innodb_autoinc_lock_mode=2 \
  "wsrep_provider_options=base_host=127.0.0.1;base_port=$cluster;gmcast.listen_addr=tcp://127.0.0.1:$cluster;ist.recv_addr=127.0.0.1:$ist"
url=${mysql_url[node]}
"$DLOCK" once -q -b "${url/mysql/mysql-version}" -k other --remember 1h -- true
tables() { for name in keys locks records; do sql node "SELECT * FROM dlock_$name"; done; }
before=$(tables)
for backend in mysql mysql-row; do
  doctor 1 -b "${url/mysql/$backend}"
  finds FAIL mysql-cluster 'a Galera cluster of 1'
  finds_no try-acquire
done
doctor 0 -b "${url/mysql/mysql-version}"
finds ok mysql-cluster 'a Galera cluster of 1'
finds ok try-done-mark
finds_no mysql-durability
# Two servers of a cluster that take writes are as they should be: here, one by two names.
doctor 0 -b "mysql-version://app@127.0.0.1:${mysql_port[node]},localhost:${mysql_port[node]}/test"
finds_no mysql-primaries
assert_equal "$before" "$(tables)" "the tables"
