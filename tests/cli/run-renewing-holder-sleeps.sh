#!/usr/bin/env bash
# While a lease is renewed in time, the thread that renews it wakes up three times per ttl.  The two that watch the end of the
# lease, one in each process, look at the time that it had when they fell asleep: about once per ttl.
. "$(dirname "$0")/lib.sh"

wakes() { # TASK...: how often these threads, as /proc/PID/task/TID, have been put to sleep
  local task total=0 n
  for task in "$@"; do
    n=$(awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n + 0 }' "$task/status")
    total=$((total + n))
  done
  echo "$total"
}

"$TEST_DLOCK" run --backend "memory://$tmp/store" --key k --ttl 3s -- sleep 1000 &
launcher=$!
# The keeper starts after a second.
has_keeper() {
  read -r supervisor _ <"/proc/$launcher/task/$launcher/children" || true
  local tasks=("/proc/$supervisor/task"/*)
  ((${#tasks[@]} == 2))
}
wait_until 10 has_keeper
for task in "/proc/$supervisor/task"/*; do
  [[ ${task##*/} == "$supervisor" ]] || keeper=$task
done
sleep 0.5
watchers=("/proc/$launcher/task/$launcher" "/proc/$supervisor/task/$supervisor")
before=$(wakes "${watchers[@]}")
keeper_before=$(wakes "$keeper")
sleep 6  # two ttls
watches=$(($(wakes "${watchers[@]}") - before))
((watches <= 6)) || fail "those who watch woke up $watches times in two ttls"
renewals=$(($(wakes "$keeper") - keeper_before))
# A busy machine may interrupt it, and what it writes to may make it wait.
((renewals >= 5 && renewals <= 8)) || fail "the keeper woke up $renewals times in two ttls"
