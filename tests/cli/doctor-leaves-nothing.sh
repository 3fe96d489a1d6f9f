#!/usr/bin/env bash
# ctest: every backend
# What dlock doctor tries is gone when it ends, also if a signal ends it: the service is as it was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

# contents: all that the service has.
contents() {
  local name
  case $backend in
    file) find "$locks" "$HOME" -printf '%P %m\n' | sort ;;
    redis | redlock)
      for name in "${servers_of_backend[@]:1}"; do
        rcli "$name" keys '*' | sort
        rcli "$name" client list | grep -v 'cmd=client' || true
      done
      ;;
    zookeeper) nodes_below / ;;
    postgres*)
      for name in $(sql server "SELECT relname FROM pg_stat_user_tables ORDER BY 1"); do
        echo "$name"
        sql server "TABLE $name" | sort
      done
      ;;
    mysql*)
      for name in $(sql server 'SHOW TABLES'); do
        echo "$name"
        sql server "SELECT * FROM $name" | sort
      done
      ;;
  esac
}
nodes_below() {
  local child
  echo "$1 $(zk server get "$1")"
  for child in $(zk server ls "$1"); do nodes_below "${1%/}/$child"; done
}

"$DLOCK" run -q -k other -- true  # for the tables of a database
[[ ${trait[ids]} != true ]] || "$DLOCK" once -q --remember 1h -k other -- true

before=$(contents)
for signal in none none INT TERM HUP; do
  for wait in 0 0.005 0.02 0.05 0.1; do
    "$DLOCK" doctor >out 2>err &
    doctor=$!
    if [[ $signal != none ]]; then
      sleep "$wait"  # any instant will do
      kill -s "$signal" "$doctor" 2>/dev/null || true
    fi
    got=0
    wait "$doctor" || got=$?
    [[ $got == [01] || $signal != none ]] || fail "status $got: $(cat out err)"
    assert_equal "$before" "$(contents)" "the service after $signal $wait: $(cat out err)"
  done
done
grep -q '^ok  *try-force-release' out || { "$DLOCK" doctor >out || :; }
grep -q '^ok  *try-force-release' out || fail "nothing was tried: $(<out)"
