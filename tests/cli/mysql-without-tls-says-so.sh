#!/usr/bin/env bash
# A MySQL on another machine that has no TLS is used, and that is said in one line; not of one on this machine, nor
# where the URL says that it is meant.  This script has a network of its own.
if [[ -z ${own_network-} ]] && unshare -n true 2>/dev/null; then own_network=1 exec unshare -n bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"
[[ -n ${own_network-} ]] || skip "may not have a network of its own"
need ip
ip link set lo up
. "$(dirname "$0")/mysql.sh"
cd "$tmp"
export DLOCK_PASSWORD_FILE=$mysql_password_file

# Whom one talks to from another address is taken for another machine.
ip address add 10.9.9.9/32 dev lo
ip route replace local 10.9.9.8 dev lo table local src 10.9.9.9
ip route replace local 10.9.9.7 dev lo table local src 10.9.9.9
start_mysql a bind_address=0.0.0.0 skip_ssl
for method in table row version; do
  for host in 127.0.0.1 127.0.0.2 10.9.9.9 localhost; do
    expect_status 0 "$DLOCK" run -b "mysql-$method://app@$host:${mysql_port[a]}/test" -k job -- true 2>err
    assert_equal "" "$(<err)" "stderr with $host"
  done
  there=mysql-$method://app@10.9.9.8:${mysql_port[a]}/test
  expect_status 0 "$DLOCK" run -b "$there" -k a -k b -- true 2>err
  assert_equal 1 "$(wc -l <err)" "lines of stderr with another machine ($(<err))"
  assert_contains "$(<err)" "mysql 10.9.9.8:${mysql_port[a]} has no TLS" "stderr with another machine"
  shards both "$there" "${there/10.9.9.8/10.9.9.7}"
  expect_status 0 "$DLOCK" list --config both -b db 2>err
  assert_equal 2 "$(grep -c "has no TLS" err)" "servers of two that are named ($(<err))"
  expect_status 0 "$DLOCK" run -q -b "$there" -k job -- true 2>err
  assert_equal "" "$(<err)" "stderr with -q"
  expect_status 0 "$DLOCK" run -b "$there?tls=off" -k job -- true 2>err
  assert_equal "" "$(<err)" "stderr with tls=off"
done
