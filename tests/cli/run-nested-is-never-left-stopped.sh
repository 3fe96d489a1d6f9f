#!/usr/bin/env bash
# ctest: cost 10
# If both processes of a run are killed, one after the other, nothing below it stays behind stopped, and holds a lock for
# ever: neither the job of a nested run nor its two processes.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

tree=()
at_exit() { ((!${#tree[@]})) || kill -KILL "${tree[@]}" 2>/dev/null || true; }

cat >outer <<'SH2'
#!/bin/sh
"$DLOCK" run -q -k inner -- sh -c 'sleep 600 & touch in; sleep 601; :'
:
SH2
chmod +x outer

nobody_is_stopped() {
  local pid stat
  for pid in "${tree[@]}"; do
    stat=
    read -r stat 2>/dev/null <"/proc/$pid/stat" || true
    [[ ${stat##*) } != T* ]] || return 1
  done
}
for ((round = 0; round < 20; ++round)); do
  rm -f in
  "$DLOCK" run -q -k job -- ./outer 2>/dev/null &
  launcher=$!
  wait_until 30 test -e in
  mapfile -t tree < <(tree_of "$launcher")
  pair=("$launcher" "${tree[1]}")  # and its supervisor
  ((round % 2)) || pair=("${tree[1]}" "$launcher")
  for pid in "${pair[@]}"; do /bin/kill -KILL "$pid" 2>/dev/null || true; done  # some milliseconds apart
  wait_until 10 gone "${pair[@]}"
  wait_until 5 nobody_is_stopped
  # If neither of the two could do anything any more, the nested run lives on.
  kill -KILL "${tree[@]}" 2>/dev/null || true
  wait_until 10 gone "${tree[@]}"
  tree=()
done
