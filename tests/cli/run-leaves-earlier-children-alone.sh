#!/usr/bin/env bash
# `helper & exec dlock run ...`: a process that the shell had started before it became dlock is not of the job.  When the
# supervisor is killed, dlock ends the job and neither ends the helper nor waits for it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"
need unshare

cd "$tmp"
cat >script <<'SH'
#!/bin/bash
bash -c 'sleep 1000 & echo $! >>helpers; wait' &
echo $! >>helpers
until [ "$(wc -l <helpers)" = 2 ]; do sleep 0.01; done
echo $$ >front
exec "$@"
SH
chmod +x script
at_exit() {
  pkill -KILL -f -- "$mark"
  xargs kill -KILL <helpers
}

with_proc() { "$@"; }
for world in with_proc no_proc; do
  if [[ $world == no_proc ]] && ! unshare -m true 2>/dev/null; then
    echo "not tried, no namespaces to be had: $world"
    continue
  fi
  rm -f helpers
  $world ./script "$DLOCK" run -q -k job -- ./tree 2>err &
  running=$!
  wait_until 30 tree_is_grown
  kill -KILL "$(pgrep -n -P "$(<front)")"
  status=0
  wait "$running" || status=$?
  assert_equal 79 "$status" "$world: status when the supervisor was killed ($(<err))"
  assert_felled "$world, supervisor killed"
  mapfile -t helpers <helpers
  for helper in "${helpers[@]}"; do
    if gone "$helper"; then fail "$world: a helper of the script was ended with the job"; fi
  done
  kill -KILL "${helpers[@]}"
  assert_free job
done
