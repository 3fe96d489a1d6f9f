# shellcheck shell=bash
# The file backend, next to flock(1) doing the same on the same file system.  After common.sh.
: "${tmp:?bench.sh comes first}" "${dlock:?}" "${rounds:?}" "${source_dir:?}"

table "dlock file" flock

mapfile -t ms < <(run_ms 60 "'$dlock' run --key x -- /bin/true" "flock $tmp/flock /bin/true")
row "run /bin/true, ms (median)" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 1.25

for ((i = 0; i < rounds; ++i)); do
  hand_over "$dlock" run --quiet --key x -- >>"$tmp/dlock.us"
  hand_over flock "$tmp/flock" >>"$tmp/flock.us"
done
us=$(median <"$tmp/dlock.us")
flock_us=$(median <"$tmp/flock.us")
row "hand-over to one waiter, us (median of $rounds)" "$us" "$flock_us" "$(ratio "$us" "$flock_us")" 1.5

# A holder while its job runs.
"$dlock" run --key x -- "$tmp/stamp" "$tmp/idle" 60000 &
holder=$!
until [[ -e $tmp/idle ]]; do sleep 0.01; done
sleep 1.5
mapfile -t pids < <(dlock_tree "$holder")
before=$(switches "${pids[@]}")
sleep 5
row "wake-ups of a holder in 5 s" $(($(switches "${pids[@]}") - before)) "" - 0

# A job that waits.
"$dlock" run --quiet --key x -- /bin/true &
waiter=$!
flock --no-fork "$tmp/flock" sleep 60 &
flock_holder=$!
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
stop "$waiter" "$holder" "$flock_waiter" "$flock_holder"

# One of many waiters gets the lock.  HAND_OVER_WAITERS has their numbers, the first one to compare the others with.
read -ra many <<<"${HAND_OVER_WAITERS:-10 100 300 1000}"
: >"$tmp/flock-many"
# many_waiters TOOL MODE WAITERS: leaves the time and the CPU time for one hand-over in $took and $cpu; 1 if it fails.
many_waiters() {
  local runs=1
  (($3 >= 100)) || runs=5
  DLOCK=$dlock LOCK_FILE=$tmp/flock-many python3 "$source_dir/tests/bench/hand_over.py" "$1" "$2" "$3" $runs \
    >"$tmp/hand-over" || return 1
  { read -r took && read -r cpu; } <"$tmp/hand-over"
}
if have python3; then
  for mode in exclusive shared slots; do
    flock_mode=${mode/slots/exclusive}  # flock(1) has none
    few_took='' few_cpu=''
    for waiters in "${many[@]}"; do
      what="hand-over, $mode, $waiters waiters"
      if ! many_waiters flock "$flock_mode" "$waiters"; then
        left_out "$what"
        continue
      fi
      flock_took=$took flock_cpu=$cpu
      if ! many_waiters dlock $mode "$waiters"; then
        left_out "$what"
        # shellcheck disable=SC2034  # for bench.sh
        missed=1
        continue
      fi
      row "$what, us" "$took" "$flock_took" "$(ratio "$took" "$flock_took")" 3
      if [[ -n $few_took ]]; then
        row "  next to that with ${many[0]} waiters" "$took" "$few_took" "$(ratio "$took" "$few_took")" 2
      fi
      row "  CPU time of all processes, us" "$cpu" "$flock_cpu" "$(ratio "$cpu" "$flock_cpu")" 3
      if [[ -n $few_cpu ]]; then
        row "  next to that with ${many[0]} waiters" "$cpu" "$few_cpu" "$(ratio "$cpu" "$few_cpu")" 2
      fi
      few_took=${few_took:-$took} few_cpu=${few_cpu:-$cpu}
    done
  done
else
  left_out "hand-over to one of many waiters: python3 is not installed"
fi

# Waiters, with others behind them that come and go, while the lock is handed over to those before them.
# background KEY FILE [OPTIONS]: a dlock that has or wants this lock; its command writes FILE and waits for FILE.go.
background() {
  local key=$1 file=$2
  shift 2
  # shellcheck disable=SC2016  # for the inner shell
  "$dlock" run --key "$key" "$@" -- sh -c 'echo >"$1"; until test -e "$1.go"; do sleep 0.01; done' sh "$file" \
    2>/dev/null &
}
# await_waiters KEY NUMBER: until so many wait.
await_waiters() {
  until [[ $("$dlock" list -o waiting "$1" | sed -n '2s/ *$//p') == "$2" ]]; do sleep 0.02; done
}
background crowd "$tmp/crowd-0" --quiet
until [[ -e $tmp/crowd-0 ]]; do sleep 0.01; done
for ((i = 1; i <= 4; ++i)); do
  background crowd "$tmp/crowd-$i" --quiet
  await_waiters crowd $i
done
quiet=() talking=()
for ((i = 0; i < 10; ++i)); do
  background crowd "$tmp/crowd-quiet-$i" --quiet
  quiet+=($!)
  await_waiters crowd $((5 + 2 * i))
  background crowd "$tmp/crowd-talking-$i"
  talking+=($!)
  await_waiters crowd $((6 + 2 * i))
done
sleep 2
mapfile -t quiet_pids < <(for pid in "${quiet[@]}"; do dlock_tree "$pid"; done)
mapfile -t talking_pids < <(for pid in "${talking[@]}"; do dlock_tree "$pid"; done)
before=$(switches "${quiet_pids[@]}")
talked=$(switches "${talking_pids[@]}")
begun=$EPOCHSECONDS
for ((i = 1; i <= 4; ++i)); do
  background crowd "$tmp/crowd-gives-up" --quiet --wait 0.5
  background crowd "$tmp/crowd-leaves" --quiet
  leaver=$!
  "$dlock" list >/dev/null
  sleep 1
  stop "$leaver"
  touch "$tmp/crowd-$((i - 1)).go"
  until [[ -e $tmp/crowd-$i ]]; do sleep 0.01; done
done
while ((EPOCHSECONDS - begun < 20)); do sleep 0.1; done
# One in ten seconds each, of which each may be two switches.
row "wake-ups of 10 quiet waiters in a crowd, in 20 s" $(($(switches "${quiet_pids[@]}") - before)) "" - 40
row "wake-ups of 10 other waiters in 20 s" $(($(switches "${talking_pids[@]}") - talked)) "" - 40
mapfile -t pids < <(jobs -pr)
stop "${pids[@]}"

# A list of few locks among many files.
mkdir -m 0700 "$tmp/many"
(
  umask 077
  cd "$tmp/many" || exit
  seq -f key-%g 10000 | xargs touch
)
for ((i = 1; i <= 50; ++i)); do
  "$dlock" run --quiet --backend "file://$tmp/many" --key "key-$((200 * i))" -- sleep 1000 &
done
until (($("$dlock" list --backend "file://$tmp/many" -o key | wc -l) == 51)); do sleep 0.1; done
mapfile -t ms < <(run_ms 5 "'$dlock' list --backend 'file://$tmp/many'")
row "list of 50 locks among 10,000 files, ms (median)" "${ms[0]}" "" - 300
mapfile -t pids < <(jobs -pr)
stop "${pids[@]}"
