# shellcheck shell=bash disable=SC2034  # `missed` is for bench.sh
# What the benchmarks measure with.  For the scripts that tests/bench.sh sources.
: "${tmp:?bench.sh comes first}" "${dlock:?}" "${source_dir:?}"

missed=0  # 1: some target was; for bench.sh

# table WHAT OTHER: begins one that compares dlock, as WHAT, with OTHER.
table() {
  printf '%-47s %12s %12s %7s %8s\n' "" "$1" "$2" ratio "target <="
}

# row WHAT DLOCK OTHER RATIO TARGET: one line of the table; RATIO "-": the value itself has the target;
# TARGET "-": there is none.
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
  printf '%-47s %12s %12s %7s %8s  %s\n' "$1" "$2" "$3" "$4" "${5/#-/}" "$verdict"
}

# left_out WHAT: a row, or some, that cannot be measured here.
left_out() { printf '(left out: %s)\n' "$*"; }

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3g", a / b }'; }
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# have TOOL...: all of these commands are installed.
have() {
  local tool
  for tool in "$@"; do command -v "$tool" >/dev/null || return 1; done
}

# run_ms RUNS COMMAND...: the time each command takes, a line each, in ms.  They take turns of RUNS
# runs, so that what else the machine does hits all of them; the median of the turns' medians.
run_ms() {
  local runs=$1 turn i
  shift
  rm -f "$tmp"/run-*.ms
  for turn in 1 2 3 4 5; do
    if ! hyperfine -N --warmup 3 --runs "$runs" --style none --export-csv "$tmp/run.csv" "$@" \
      >"$tmp/hyperfine" 2>&1; then
      cat "$tmp/hyperfine" >&2
      return 1
    fi
    awk -F, -v to="$tmp/run-" 'NR > 1 { printf "%.3f\n", $(NF - 4) * 1000 >>(to (NR - 1) ".ms") }' \
      "$tmp/run.csv"
  done
  for ((i = 1; i <= $#; ++i)); do median <"$tmp/run-$i.ms"; done
}

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

"${CXX:-c++}" -O2 -o "$tmp/stamp" "$source_dir/tests/bench/stamp.cpp"

# hand_over COMMAND...: runs a job and, waiting for it, another, under this wrapper; prints the time
# between the last act of the one and the first of the other, in microseconds.
hand_over() {
  local first second
  rm -f "$tmp/first" "$tmp/second"
  "$@" "$tmp/stamp" "$tmp/first" 80 >/dev/null &
  first=$!
  until [[ -e $tmp/first ]]; do sleep 0.002; done
  "$@" "$tmp/stamp" "$tmp/second" >/dev/null &
  second=$!
  wait "$first"
  wait "$second"
  echo $((($(<"$tmp/second") - $(<"$tmp/first")) / 1000))
}

# stop PID...: ends background jobs of ours.
stop() {
  kill "$@"
  wait "$@" 2>/dev/null || true
}

# some_port: perhaps a free one, below those that the kernel gives to others.
some_port() { echo $((10000 + SRANDOM % 20000)); }

# serve TEST COMMAND...: runs a server until TEST succeeds, and leaves its pid in $server; 1 if it ends.
serve() {
  local test=$1 i
  shift
  "$@" >"$tmp/server.log" 2>&1 </dev/null &
  server=$!
  for ((i = 0; i < 500; ++i)); do
    if $test >/dev/null 2>&1; then return 0; fi
    [[ -d /proc/$server ]] || break
    sleep 0.02
  done
  return 1
}

# start_redis: an empty server on $redis_port.
redis_answers() { [[ $(redis-cli -p "$redis_port" ping) == PONG ]]; }
start_redis() {
  local attempt
  for attempt in {1..10}; do
    redis_port=$(some_port)
    if serve redis_answers redis-server --bind 127.0.0.1 --port "$redis_port" --save "" \
      --dir "$tmp" --loglevel warning; then return; fi
  done
  echo "bench.sh: redis-server does not run (attempt $attempt): $(<"$tmp/server.log")" >&2
  exit 1
}
