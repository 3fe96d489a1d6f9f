#!/usr/bin/env bash
# A variable that begins with DLOCK_ and is not read is named, with what was meant, also with -q: a lock that is not
# where one believes is worse than a line.  Not one that dlock or Kubernetes sets.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

# says TEXT VARIABLE...: that is all that dlock run -q says with these variables.
says() {
  local want=$1
  shift
  expect_status 0 env "$@" "$DLOCK" run -q -k job -- true 2>err
  assert_equal "$want" "$(<err)" "stderr with $*"
}
says 'dlock: the variable DLOCK_WIAT is not read; did you mean "DLOCK_WAIT"?' DLOCK_WIAT=10
says 'dlock: the variable DLOCK_SERVRS is not read; did you mean "DLOCK_SERVERS"?' DLOCK_SERVRS=h
says 'dlock: the variable DLOCK_NONBLOCK is not read; use the option --nonblock, or 0 for wait' DLOCK_NONBLOCK=1
says 'dlock: the variable DLOCK_YES is not read; use the option --yes' DLOCK_YES=1
says 'dlock: the variable DLOCK_SHARDS is not read; use "shards" in a profile of the config file' DLOCK_SHARDS=redis://h
says 'dlock: the variable DLOCK_ZK_STYLE is not read; use ?style=STYLE in the URL' DLOCK_ZK_STYLE=kazoo
says "" DLOCK_SERVER=h
says 'dlock: the variable DLOCK_BACKENDS is not read; did you mean "DLOCK_BACKEND"?' DLOCK_BACKENDS=redis
says 'dlock: the variable DLOCK_SHARED is not read; use the option --shared' DLOCK_SHARED=1
says 'dlock: the variable DLOCK_SLOTS is not read; use the option --slots' DLOCK_SLOTS=2
says 'dlock: the variable DLOCK_STATUS_FILE is not read; use the option --status-file' DLOCK_STATUS_FILE=x
says 'dlock: the variable DLOCK_KUBECTL is not read' DLOCK_KUBECTL=secret
says 'dlock: the variable DLOCK_wait is not read; did you mean "DLOCK_WAIT"?' DLOCK_wait=1
says 'dlock: the variable DLOCK_PORT is not read' DLOCK_PORT=6380
says "" DLOCK_WIAT=
says "" DLOCK_SERVICE_HOST=10.0.0.1 DLOCK_SERVICE_PORT=80 DLOCK_PORT=tcp://10.0.0.1:80 DLOCK_PORT_80_TCP_ADDR=10.0.0.1 \
  DLOCK_API_SERVICE_HOST=10.0.0.2 DLOCK_API_PORT=tcp://10.0.0.2:80 DLOCK_API_PORT_80_TCP=tcp://10.0.0.2:80

# What dlock sets is known to a run within.
expect_status 0 "$DLOCK" run -q -k a --slots 2 -- "$DLOCK" once -q -k b --every 1d -- "$DLOCK" run -q -k c -- true 2>err
assert_equal "" "$(<err)" "stderr of a run within a run"
expect_status 0 env DLOCK_WIAT=1 "$DLOCK" list --json >out 2>err
assert_equal '{"level":"error","message":"the variable DLOCK_WIAT is not read; did you mean \"DLOCK_WAIT\"?"}' "$(<err)" "with --json"
expect_status 0 env DLOCK_WIAT=1 "$DLOCK" help >out 2>err
assert_equal "" "$(<err)" "stderr of help"

# Servers without their backend, and a backend that is empty since another variable is.
DLOCK_BACKEND='' DLOCK_SERVERS=h expect_status 64 "$DLOCK" run -k job -- touch ran 2>err
assert_contains "$(<err)" 'DLOCK_SERVERS: names servers, and no backend is named: say which, as in -b redis' "stderr"
[[ ! -e ran ]] || fail "the command was run"
DLOCK_BACKEND='' expect_status 0 "$DLOCK" list -q >out 2>err
assert_equal "dlock: the variable DLOCK_BACKEND is empty, so the locks are files of this machine" "$(<err)" "stderr"
DLOCK_SERVERS=h expect_status 0 "$DLOCK" list -q >out 2>err
assert_equal "" "$(<err)" "stderr with servers for another backend"

# Neither is such a one taken as the option.
DLOCK_WHILE=1 expect_status 64 "$DLOCK" acquire -b redis://h -k job 2>err
assert_contains "$(<err)" "use the option --while" "stderr with DLOCK_WHILE"
assert_contains "$(<err)" "for how long?" "stderr with DLOCK_WHILE"
DLOCK_TOKEN_FILE=x expect_status 64 "$DLOCK" renew -b redis://h -k job 2>err
assert_contains "$(<err)" "use the option --token-file" "stderr with DLOCK_TOKEN_FILE"
assert_contains "$(<err)" 'the lock id of "job" is missing' "stderr with DLOCK_TOKEN_FILE"

# It locks as if it were not there.
hold --ttl 30s
DLOCK_SHARED=1 expect_status 75 "$DLOCK" run -q -n -k job -- true 2>err
release
