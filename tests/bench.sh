#!/usr/bin/env bash
# What dlock costs, next to flock(1) doing the same on the same file system.
# Prints a table.  With BENCH_STRICT=1 in the environment a target that is missed makes it fail.
# DLOCK is the program to measure (build/default/src/dlock), BENCH_DIR where the locks are ($TMPDIR).
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
dlock=$(realpath -- "${DLOCK:-$source_dir/build/default/src/dlock}")
rounds=60

for tool in flock hyperfine "${CXX:-c++}"; do
  command -v "$tool" >/dev/null || {
    echo "bench.sh: $tool is not installed (apt-get install util-linux hyperfine g++)" >&2
    exit 1
  }
done
[[ -x $dlock ]] || {
  echo "bench.sh: there is no $dlock: build it first, or say DLOCK=..." >&2
  exit 1
}

tmp=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/dlock-bench.XXXXXX")
cleanup() {
  local pids
  mapfile -t pids < <(jobs -pr)
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf -- "$tmp"
}
trap cleanup EXIT

for name in "${!DLOCK_@}"; do unset "$name"; done
mkdir -m 0700 "$tmp/locks"
export DLOCK_BACKEND=file://$tmp/locks HOME=$tmp

missed=0
# row WHAT DLOCK FLOCK RATIO TARGET: one line of the table; RATIO "-": the value itself has the target.
row() {
  local verdict=
  if [[ $5 != - ]]; then
    local measured=$4
    [[ $measured != - ]] || measured=$2
    if awk -v m="$measured" -v t="$5" 'BEGIN { exit !(m + 0 <= t + 0) }'; then
      verdict=ok
    else
      verdict=MISSED
      missed=1
    fi
  fi
  printf '%-44s %12s %12s %7s %8s  %s\n' "$1" "$2" "$3" "$4" "${5/#-/}" "$verdict"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# dlock_tree PID: the processes of dlock from this one down, without the commands they run.
dlock_tree() {
  local pid=$1 child children
  [[ $(readlink "/proc/$pid/exe") == "$dlock" ]] || return 0
  echo "$pid"
  children=$(cat "/proc/$pid/task/"*/children 2>/dev/null) || true
  for child in $children; do dlock_tree "$child"; done
}

# switches PID...: how often these processes, in all their threads, have been put on a processor.
switches() {
  local pid
  for pid in "$@"; do cat "/proc/$pid/task/"*/status; done |
    awk '/ctxt_switches/ { n += $2 } END { print n + 0 }'
}

# memory FIELD PID...: the sum over these processes, in KiB.
memory() {
  local field=$1 pid
  shift
  for pid in "$@"; do cat "/proc/$pid/smaps_rollup"; done |
    awk -v field="^($field):" '$0 ~ field { n += $2 } END { print n + 0 }'
}

printf '%-44s %12s %12s %7s %8s\n' "" dlock flock ratio "target <="

# (a) A job that does nothing.
hyperfine -N --warmup 20 --runs 300 --style none --export-csv "$tmp/run.csv" \
  "'$dlock' run --key x -- /bin/true" "flock $tmp/flock /bin/true" >/dev/null
mapfile -t ms < <(awk -F, 'NR > 1 { printf "%.3f\n", $(NF - 4) * 1000 }' "$tmp/run.csv")
row "run /bin/true, ms (median)" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 1.5

# (b) From the last act of a job to the first one of the job that waits for its lock.
cat >"$tmp/stamp.cpp" <<'END'
// stamp FILE [MS]: waits for MS milliseconds and writes the time into FILE, as its first and last act.
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char** argv) {
  timespec now;
  if (argc > 2) {
    const long ms = atol(argv[2]);
    const timespec pause{ms / 1000, ms % 1000 * 1000000};
    const int started = open(argv[1], O_CREAT | O_WRONLY, 0600);
    nanosleep(&pause, nullptr);
    clock_gettime(CLOCK_MONOTONIC, &now);
    close(started);
  } else {
    clock_gettime(CLOCK_MONOTONIC, &now);
  }
  char text[32];
  int at = sizeof text;
  text[--at] = '\n';
  for (long long n = now.tv_sec * 1000000000LL + now.tv_nsec; n > 0; n /= 10) text[--at] = static_cast<char>('0' + n % 10);
  const int file = open(argv[1], O_CREAT | O_WRONLY, 0600);
  const bool good = write(file, text + at, sizeof text - at) > 0;
  _exit(good ? 0 : 1);
}
END
"${CXX:-c++}" -O2 -o "$tmp/stamp" "$tmp/stamp.cpp"

# hand_over COMMAND...: runs a job and, waiting for it, another, under this wrapper; prints the time
# between the two in microseconds.
hand_over() {
  local first second
  rm -f "$tmp/first" "$tmp/second"
  "$@" "$tmp/stamp" "$tmp/first" 80 &
  first=$!
  until [[ -e $tmp/first ]]; do sleep 0.002; done
  "$@" "$tmp/stamp" "$tmp/second" &
  second=$!
  wait "$first"
  wait "$second"
  echo $((($(<"$tmp/second") - $(<"$tmp/first")) / 1000))
}
for ((i = 0; i < rounds; ++i)); do
  hand_over "$dlock" run --quiet --key x -- >>"$tmp/dlock.us"
  hand_over flock "$tmp/flock" >>"$tmp/flock.us"
done
us=$(median <"$tmp/dlock.us")
flock_us=$(median <"$tmp/flock.us")
row "hand-over to one waiter, us (median of $rounds)" "$us" "$flock_us" "$(ratio "$us" "$flock_us")" 1.5

# (c) A holder while its job runs.
"$dlock" run --key x -- "$tmp/stamp" "$tmp/idle" 60000 &
holder=$!
until [[ -e $tmp/idle ]]; do sleep 0.01; done
sleep 1.5
mapfile -t pids < <(dlock_tree "$holder")
before=$(switches "${pids[@]}")
sleep 5
row "wake-ups of a holder in 5 s" $(($(switches "${pids[@]}") - before)) "" - 0

# (d) A job that waits.
"$dlock" run --quiet --key x -- /bin/true &
waiter=$!
flock --no-fork "$tmp/flock" sleep 60 &
sleep 0.2
flock "$tmp/flock" /bin/true &
flock_waiter=$!
sleep 1
mapfile -t pids < <(dlock_tree "$waiter")
before=$(switches "${pids[@]}")
sleep 2
row "wake-ups of a waiter in 2 s" $(($(switches "${pids[@]}") - before)) "" - 0
row "memory of a waiter, KiB: resident" "$(memory Rss "${pids[@]}")" "$(memory Rss "$flock_waiter")" \
  "$(ratio "$(memory Rss "${pids[@]}")" "$(memory Rss "$flock_waiter")")" -
private='Private_Clean|Private_Dirty'
row "  of it private, in ${#pids[@]} processes" "$(memory "$private" "${pids[@]}")" \
  "$(memory "$private" "$flock_waiter")" \
  "$(ratio "$(memory "$private" "${pids[@]}")" "$(memory "$private" "$flock_waiter")")" -

if [[ ${BENCH_STRICT-} == 1 ]]; then exit "$missed"; fi
