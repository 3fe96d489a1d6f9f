# shellcheck shell=bash disable=SC2154  # the arrays are those of mysql.sh
# A MariaDB primary and its standby, for servers.sh, after mysql.sh.  The primary answers a COMMIT when the standby has
# it too (semi-synchronous, AFTER_SYNC), so no lock that was granted is lost when the standby takes over.

primary=a standby=b

# start_mysql_pair: both, empty.
start_mysql_pair() {
  start_mysql a "${pair_settings[@]}" server_id=1
  start_mysql b "${pair_settings[@]}" server_id=2 read_only=1
  build_standby
}
pair_settings=(log_bin=binlog log_slave_updates sync_binlog=1 innodb_flush_log_at_trx_commit=1
  rpl_semi_sync_slave_enabled=1 rpl_semi_sync_master_wait_point=AFTER_SYNC rpl_semi_sync_master_timeout=3600000)

# settle_roles: what they are, also after a restart.
settle_roles() {
  local name
  for name in a b; do
    sed -i '/read_only\|semi_sync_master_enabled/d' "${mysql_dir[$name]}/settings"
  done
  echo "--rpl_semi_sync_master_enabled=1" >>"${mysql_dir[$primary]}/settings"
  echo "--read_only=1" >>"${mysql_dir[$standby]}/settings"
}

# build_standby: has the standby, which runs, start with the data of the primary and follow it.  The primary waits for
# it from the moment at which it has everything.
build_standby() {
  settle_roles
  {
    echo 'SET sql_log_bin = 0;'
    mariadb-dump --no-defaults --user=root --socket="${mysql_dir[$primary]}/socket" --single-transaction \
      --master-data=1 --gtid test
  } | sql "$standby"
  sql "$standby" "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = ${mysql_port[$primary]},
    MASTER_USER = 'root', MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos; START SLAVE"
  has_all "$(sql "$primary" 'SELECT @@gtid_binlog_pos')"
  sql "$primary" 'SET GLOBAL rpl_semi_sync_master_enabled = 1'
}

# has_all POSITION: waits until the standby has done everything up to there.
has_all() {
  [[ $(sql "$standby" "SELECT MASTER_GTID_WAIT('$1', 60)") == 0 ]] || fail "the standby does not follow"
}

# fail_over HOW SECONDS: the standby takes over.  Of the primary: dead; planned: it has become read-only, and goes on to
# answer for so long; cut_off: it knows nothing of that, and no COMMIT of its is acknowledged any more.  Then a new server
# with its port follows.
fail_over() {
  local received dead=$primary
  [[ $1 != planned ]] || sql "$primary" 'SET GLOBAL read_only = 1'
  sql "$standby" 'STOP SLAVE IO_THREAD'
  received=$(sql "$standby" 'SHOW SLAVE STATUS\G' | sed -n 's/^ *Gtid_IO_Pos: //p')
  has_all "$received"
  sql "$standby" 'STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0'
  primary=$standby standby=$dead
  if [[ $1 != dead ]]; then
    sleep "$2"
    stop_mysql "$dead"
  fi
  rm -r "${mysql_dir[$dead]}/data"
  cp -R "$lib_mysql_data" "${mysql_dir[$dead]}/data"
  settle_roles
  lib_mysql_run "$dead" || fail "mariadbd does not run: $(<"${mysql_dir[$dead]}/output")"
  build_standby
}

# restart_pair NAME: as restart_mysql; a standby follows again.
restart_pair() {
  restart_mysql "$1"
  [[ $1 != "$standby" ]] || sql "$1" 'START SLAVE'
}
stop_pair() { stop_mysql "$1"; }
pause_pair() { pause_mysql "$1"; }
resume_pair() { resume_mysql "$1"; }
