#!/usr/bin/env bash
# Time zone, a wall clock that is wrong or jumps, and a boot clock with any start value change
# nothing: jobs run under the lock, waits end when they should, and limits hold.
. "$(dirname "$0")/lib.sh"

cd "$tmp"

# works PREFIX...: what has to do with time works with this before dlock.
works() {
  local world="$*" got holder waiter started took
  rm -f held go ran err
  "$@" "$DLOCK" run -q -k job --ttl 5 --kill-after 1 -- \
    sh -c 'touch held; until test -e go; do sleep 0.02; done' &
  holder=$!
  wait_until 30 test -e held

  # A wait runs out, neither at once nor never.  This clock is the script's own.
  got=0
  started=$(monotonic_ms)
  timeout 60 "$@" "$DLOCK" run -k job -w 0.7 -- true 2>err || got=$?
  took=$(($(monotonic_ms) - started))
  assert_equal 75 "$got" "status of a wait that runs out ($world): $(<err)"
  ((took >= 600)) || fail "a wait of 0.7 s was over after $took ms ($world)"
  [[ $(<err) =~ 'for '[0-9.]+(ms|s)(','|$|$'\n') ]] || fail "how long it is held is odd ($world): $(<err)"

  # A waiter is served.
  "$@" "$DLOCK" run -q -k job -w 60 -- touch ran &
  waiter=$!
  wait_until 30 waits "$waiter"
  [[ ! -e ran ]] || fail "OVERLAP: a command ran beside the holder ($world)"
  touch go
  got=0
  wait "$holder" || got=$?
  assert_equal 0 "$got" "exit status of the holder ($world)"
  wait "$waiter" || got=$?
  assert_equal 0 "$got" "exit status of the waiter ($world)"
  [[ -e ran ]] || fail "the waiter's command did not run ($world)"

  # --max-hold ends a job, and the times in the status file are times.
  got=0
  timeout 60 "$@" "$DLOCK" run -q -k job --max-hold 0.5 --status-file status -- sleep 300 || got=$?
  assert_equal 124 "$got" "status with --max-hold ($world)"
  if [[ ! $(<status) =~ '"held_ms":'([0-9]+),.*'"waited_ms":'([0-9]+)'}' ]] ||
    ((BASH_REMATCH[1] < 500 || BASH_REMATCH[1] > 60000 || BASH_REMATCH[2] > 60000)); then
    fail "the times in the status file are odd ($world): $(<status)"
  fi
}
monotonic_ms() {
  local up
  read -r up _ </proc/uptime
  echo $((10#${up/./} * 10))
}
waits() {
  # The helper of this dlock, or of the dlock below this unshare(1).
  grep -qsxE "dlock-($1|$(tr -d ' ' 2>/dev/null <"/proc/$1/task/$1/children"))" \
    /proc/[0-9]*/comm
}

works env TZ=Pacific/Kiritimati
works env TZ='<+23:59>-23:59:59'

# A wall clock that is an hour off, and one that jumps back and forth
# at each look.  (CLOCK_BOOTTIME and CLOCK_MONOTONIC go right, as they do under settimeofday.)
cat >shift.c <<'C'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
  static int calls;
  const char* how = getenv("TEST_SHIFT");
  if (how == 0) return 0;
  if (*how == '~') return ++calls % 2 ? 3600 : -86400;
  return atol(how);
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  const int result = (int)syscall(SYS_clock_gettime, clock, out);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec += shift();
  return result;
}
int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != 0) *out = now.tv_sec;
  return now.tv_sec;
}
C
# A dlock with sanitizers, or linked statically, cannot be preloaded into.
if cc=$(command -v cc || command -v gcc || command -v g++) &&
  "$cc" -x c -O1 -shared -fPIC -o shift.so shift.c 2>/dev/null &&
  env LD_PRELOAD="$tmp/shift.so" "$DLOCK" version >/dev/null 2>&1; then
  shifted=$(env LD_PRELOAD="$tmp/shift.so" TEST_SHIFT=-864000 date +%s)
  ((EPOCHSECONDS - shifted > 860000)) || fail "the clock is not shifted: $shifted"
  for how in -3600 '~'; do
    works env LD_PRELOAD="$tmp/shift.so" TEST_SHIFT="$how"
  done
else
  echo "not tested: a shifted wall clock (no compiler, or no preloading)" >&2
fi

# A boot clock far ahead of that of the script's.
ahead=(unshare --time --monotonic 100000 --boottime 100000)
if "${ahead[@]}" true 2>/dev/null; then
  works "${ahead[@]}"

  # A holder whose clock is ahead of the waiter's own: how long it has held cannot be known exactly,
  # but the lock is a lock.
  rm -f held go
  "${ahead[@]}" "$DLOCK" run -q -k job -- \
    sh -c 'touch held; until test -e go; do sleep 0.02; done' &
  holder=$!
  wait_until 30 test -e held
  got=0
  "$DLOCK" run -k job -w 0.7 -- true 2>err || got=$?
  assert_equal 75 "$got" "status of a wait for a holder with another clock"
  touch go
  wait "$holder"
else
  echo "not tested: another boot clock (unshare --time is not permitted)" >&2
fi
