# shellcheck shell=bash
# For the scripts of this folder, each of which starts with
#   . "$(dirname "$0")/lib.sh"
# A script runs with set -euo pipefail, in an environment of its own, and leaves nothing behind.
#
#   $DLOCK        the dlock under test          $tmp    an empty directory of this test
#   $TEST_DLOCK   the dlock with test backends  $locks  the file backend's directory, $tmp/locks
#   $TEST_PROXY   dlock-proxy                   $TEST_CLOCK_SHIM     dlock-clock-shim.so
#   $TEST_ZK      dlock-zk                      $TEST_MEMORY_SHIM    dlock-memory-shim.so
#   $TEST_SOURCE  the source tree               $TEST_RESERVED_PORT  dlock-reserved-port
#
# What the tests export for themselves begins with TEST_: a variable that begins with DLOCK_ is a setting of dlock.
#
# By hand: bash tests/cli/NAME.sh tests what is in build/default.
set -euo pipefail

# As a shell on a terminal would have it: nohup and CI runners ignore signals, and bash cannot take
# back what was ignored when it started.
if [[ -z ${TEST_LIB_SIGNALS-} ]]; then
  TEST_LIB_SIGNALS=default exec env --default-signal bash "$0" "$@"
fi

TEST_SOURCE=${TEST_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)}
DLOCK=${DLOCK:-$TEST_SOURCE/build/default/src/dlock}
TEST_DLOCK=${TEST_DLOCK:-$TEST_SOURCE/build/default/tests/support/dlock-test}
TEST_PROXY=${TEST_PROXY:-${TEST_DLOCK%/*}/dlock-proxy}
TEST_RESERVED_PORT=${TEST_RESERVED_PORT:-${TEST_DLOCK%/*}/dlock-reserved-port}
TEST_ZK=${TEST_ZK:-${TEST_DLOCK%/*}/dlock-zk}
TEST_CLOCK_SHIM=${TEST_CLOCK_SHIM:-${TEST_DLOCK%/*}/dlock-clock-shim.so}
TEST_MEMORY_SHIM=${TEST_MEMORY_SHIM:-${TEST_DLOCK%/*}/dlock-memory-shim.so}

# Nothing of the caller's settings or locks must matter.
for name in "${!DLOCK_@}"; do unset "$name"; done
export DLOCK TEST_DLOCK TEST_SOURCE TEST_PROXY TEST_RESERVED_PORT TEST_CLOCK_SHIM TEST_MEMORY_SHIM TEST_ZK
export LC_ALL=C.UTF-8
# The system's programs first: the python3 of a version manager is a script that takes half a second to start.
export PATH=/usr/bin:/bin:$PATH
unset name XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_STATE_HOME XDG_DATA_HOME XDG_CACHE_HOME CDPATH

# In memory where there is some: disks are slow to make things durable.
tmp=$(mktemp -d /dev/shm/dlock-test.XXXXXX 2>/dev/null || mktemp -d)
locks=$tmp/locks
mkdir -m 0700 "$locks" "$tmp/home"
lib_never=$tmp/home/.never  # nobody writes there
mkfifo "$lib_never"
export HOME=$tmp/home TMPDIR=$tmp DLOCK_BACKEND=file://$locks

# Ends the background jobs of the script that are left, and removes $tmp.
# A script that leaves something to be ended writes an at_exit() of its own.
at_exit() { :; }
lib_cleanup() {
  local status=$? pids i
  trap - EXIT ERR
  set +e
  at_exit
  mapfile -t pids < <(jobs -pr)
  if ((${#pids[@]})); then
    kill -TERM "${pids[@]}" 2>/dev/null
    kill -CONT "${pids[@]}" 2>/dev/null  # one that is stopped would not hear of it
    for ((i = 0; i < 200; ++i)); do
      gone "${pids[@]}" && break
      sleep 0.01
    done
    kill -KILL "${pids[@]}" 2>/dev/null
    wait "${pids[@]}" 2>/dev/null
  fi
  rm -rf -- "$tmp"
  exit "$status"
}
trap lib_cleanup EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# With set -e a script ends at the first command that fails: say which.
set -E
lib_newline=$'\n'
trap 'echo "${BASH_SOURCE[0]##*/}:$LINENO: failed: ${BASH_COMMAND%%"$lib_newline"*}" >&2' ERR

# fail MESSAGE: says what does not hold, and where, and ends the test.
fail() {
  local depth=1
  while [[ ${BASH_SOURCE[depth]} != "$0" ]] && ((depth + 1 < ${#BASH_SOURCE[@]})); do depth=$((depth + 1)); done
  echo "${BASH_SOURCE[depth]##*/}:${BASH_LINENO[depth - 1]}: $*" >&2
  exit 1
}

# skip REASON: ends the test as one that cannot be run here.
skip() {
  echo "skipped: $*" >&2
  exit 125
}

# need TOOL...: skips the test where one of these commands is not installed.
need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
}

# expect_status N COMMAND...: runs the command, and fails unless it exits with status N.
expect_status() {
  local want=$1 got=0
  shift
  "$@" || got=$?
  ((got == want)) || fail "expected status $want, got $got: $*"
}

# wait_until SECONDS COMMAND...: waits until the command succeeds; fails if it does not in that time.
wait_until() {
  local seconds=$1 end
  shift
  end=$((${EPOCHREALTIME/./} + seconds * 1000000))
  ! "$@" || return 0
  # Many scripts wait at once: read(1) sleeps without a process of its own.
  local never
  exec {never}<>"$lib_never"
  until "$@"; do
    ((${EPOCHREALTIME/./} < end)) || fail "not within $seconds s: $*"
    read -r -t 0.01 -u "$never" || true
  done
  exec {never}<&-
}

# now_ms: prints the time, in milliseconds.
now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# here MS: what takes at most MS milliseconds on an idle machine may take so many here: more, as a sleep of 10 ms
# takes longer; three times as many at most.
here() {
  local never longest=10000 before took i
  exec {never}<> <(:)
  for i in 1 2 3; do
    before=${EPOCHREALTIME/./}
    read -r -t 0.01 -u "$never" || true
    took=$((${EPOCHREALTIME/./} - before))
    ((took <= longest)) || longest=$took
  done
  exec {never}>&-
  ((longest <= 30000)) || longest=30000
  echo $(($1 * longest / 10000))
}

# assert_equal EXPECTED ACTUAL [WHAT]: fails unless both texts are the same.
assert_equal() {
  [[ $1 == "$2" ]] || fail "${3:+$3: }expected $(printf '%q' "$1"), got $(printf '%q' "$2")"
}

# assert_contains TEXT PART [WHAT]: fails unless the part occurs in the text.
assert_contains() {
  [[ $1 == *"$2"* ]] || fail "${3:+$3: }no $(printf '%q' "$2") in $(printf '%q' "$1")"
}

# assert_lacks TEXT PART [WHAT]: fails if the part occurs in the text.
assert_lacks() {
  [[ $1 != *"$2"* ]] || fail "${3:+$3: }there is $(printf '%q' "$2") in $(printf '%q' "$1")"
}

# gone PID...: none of these processes is there any more, but for zombies.
gone() {
  local pid stat
  for pid in "$@"; do
    stat=
    read -r stat 2>/dev/null <"/proc/$pid/stat" || true
    [[ -z $stat || ${stat##*) } == [ZX]* ]] || return 1
  done
}

# tree_of PID...: these processes and all below them, a line each.
tree_of() {
  local pid children
  for pid in "$@"; do
    echo "$pid"
    read -ra children < <(cat "/proc/$pid/task"/*/children 2>/dev/null) || true
    tree_of "${children[@]}"
  done
}

# switches PID...: how often these processes, in all their threads, have been put on a processor.
switches() {
  local pid
  for pid in "$@"; do cat "/proc/$pid/task"/*/status; done | awk '/ctxt_switches/ { n += $2 } END { print n + 0 }'
}

# has_waiter FILE: somebody waits for a flock on this file.
has_waiter() {
  grep -q -- "-> FLOCK .*:$(stat -c %i "$1") " /proc/locks
}

# try STATUS ARGUMENTS...: dlock run ARGUMENTS exits with STATUS; leaves its stderr in ./err.
try() {
  local want=$1 got=0
  shift
  "$DLOCK" run "$@" 2>err || got=$?
  ((got == want)) || fail "expected status $want, got $got: dlock run $* ($(<err))"
}

# hold ARGUMENTS...: a job in the background that holds the lock "job" until release.
hold() {
  rm -f held go
  "$DLOCK" run -q -k job "$@" -- bash -c 'exec 9<> <(:); touch held; until [[ -e go ]]; do read -rt 0.02 -u 9 || :; done' &
  holder=$!
  wait_until 30 test -e held
}
release() {
  touch go
  wait "$holder" || fail "the holder ended with status $?"
}

# shards FILE URL...: makes it a config file whose profile "db" has these shards.
shards() {
  local urls
  printf -v urls ', "%s"' "${@:2}"
  rm -f "$1"
  (umask 077 && echo "{\"backends\": {\"db\": {\"shards\": [${urls:2}]}}}" >"$1")
}

# token_file TOKEN...: prints the name of a file for --token-file.
token_file() {
  rm -f "$tmp/given.token"
  (umask 077 && printf '%s\n' "$@" >"$tmp/given.token")
  echo "$tmp/given.token"
}

# is_free KEY, is_held KEY: whether a dlock that does not wait would get this lock.
is_free() { "$DLOCK" run -q -n -k "$1" -- true; }
is_held() { ! is_free "$1"; }

# assert_free KEY, assert_held KEY: fails unless it is so now.
assert_free() { expect_status 0 "$DLOCK" run -q -n -k "$1" -- true; }
assert_held() { expect_status 75 "$DLOCK" run -q -n -k "$1" -- true; }
