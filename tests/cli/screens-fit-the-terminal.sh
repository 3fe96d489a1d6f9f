#!/usr/bin/env bash
# ctest: cost 10
# On real terminals of 60, 80 and 120 columns, with ordinary names, no line of "dlock list" and no waiting line wraps,
# and the host, to its first dot, and the pid are whole; "dlock show" and what "force-release" asks shorten nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need tmux
cd "$tmp"
start_redis server

# The machine is called as that of an operator who got it wrong at 3 a.m.
in_world() { unshare --uts bash -c 'hostname build-runner-7.ci.example.net; exec "$@"' sh "$@"; }
in_world true 2>/dev/null || { echo "not tried: the host name cannot be set" && exit 77; }

mkdir -p jobs
for name in query train report-generator; do
  printf '#!/bin/sh\ntouch "$1"\nuntil test -e go; do sleep 0.02; done\n' >"jobs/$name.sh"
done
chmod +x jobs/*.sh
label=https://gitlab.example.com/infra/deploy/-/jobs/48213377
cat >config.json <<JSON
{"backend": "prod", "backends": {"prod": {"url": "${redis_url[server]}/0"}}}
JSON
chmod 600 config.json
unset DLOCK_BACKEND
export DLOCK_CONFIG=$tmp/config.json

# hold NAME KEY OPTION... : a holder that the file NAME tells of.
hold() {
  local name=$1 key=$2 job=$3
  shift 3
  in_world "$DLOCK" run -q -k "$key" "$@" -- "$tmp/jobs/$job.sh" "$name" &
  holders+=($!)
  wait_until 30 test -e "$name"
}
holders=()
hold one data/catalogue query --shared
hold two gpu train --slots 4
hold three gpu train --slots 4
hold four nightly/customer-report report-generator
pid=$("$DLOCK" list -o pid nightly/ | tail -n 1)
for i in 1 2; do
  in_world "$DLOCK" run -q -k nightly/customer-report -- true &
  holders+=($!)
  waits() { (($("$DLOCK" list -o waiting nightly/ | tail -n 1) == i)); }
  wait_until 30 waits
done

tmux=(tmux -L "dlock-$$" -f /dev/null)
ends_tmux() { "${tmux[@]}" kill-server 2>/dev/null || true; }
trap 'ends_tmux; touch go' EXIT
# screen COLUMNS COMMAND TEXT: ./screen is what a terminal so wide shows once TEXT is there.
screen() {
  local columns=$1 command=$2 text=$3
  "${tmux[@]}" new-session -d -s it -x "$columns" -y 50 "bash --norc -c '$command; echo END; sleep 1000'"
  is_there() {
    "${tmux[@]}" capture-pane -p -t it >screen
    grep -qF "$text" screen
  }
  wait_until 30 is_there
  "${tmux[@]}" kill-session -t it
}
# whole WHAT: the host and the pid of the holder stand in ./screen, and no line has been broken.
whole() {
  grep -qE "build-runner-7( pid|  ) *$pid" screen || fail "$1 does not show host and pid: $(<screen)"
}

for columns in 60 80 120; do
  screen "$columns" "$DLOCK list" END
  whole "the list on $columns columns"
  assert_contains "$(xargs <screen)" "4 holders of 3 locks in ${redis_url[server]}/0 (profile prod)" "the list on $columns columns"
  assert_equal $((columns > 60 ? 7 : 8)) "$(grep -c . screen)" "lines of the list on $columns columns ($(<screen))"

  screen "$columns" "$DLOCK run -w 100 -k nightly/customer-report -- true" 'waiting 1s'
  whole "a waiter on $columns columns"
  assert_equal 1 "$(grep -c . screen)" "lines of a waiter on $columns columns ($(<screen))"
  ((columns < 80)) || assert_contains "$(<screen)" ' (3rd of 3): held ' "a waiter on $columns columns"
done
assert_contains "$(<screen)" '(report-generator.sh), nightly/customer-rep' "a waiter on 120 columns"

# A label stands above the waiting line, and in the list in place of the command.
touch go
wait "${holders[@]}"
rm go four
holders=()
hold four nightly/customer-report report-generator --label "$label"
pid=$("$DLOCK" list -o pid nightly/ | tail -n 1)
for columns in 60 80 120; do
  screen "$columns" "$DLOCK list" END
  whole "the list with a label on $columns columns"
  assert_equal $((columns > 60 ? 4 : 5)) "$(grep -c . screen)" "lines of the list with a label on $columns columns ($(<screen))"
  assert_contains "$(<screen)" ' LABEL' "the list with a label on $columns columns"
  screen "$columns" "$DLOCK run -w 100 -k nightly/customer-report -- true" 'waiting 1s'
  whole "a waiter for a job with a label on $columns columns"
  assert_equal "$label" "$(head -n 1 screen)" "the label on $columns columns"
  assert_equal 2 "$(grep -c . screen)" "lines of a waiter and a label on $columns columns ($(<screen))"
done

# Nothing is shortened here.
screen 80 "$DLOCK show nightly/customer-report" END
for line in "  Backend   ${redis_url[server]}/0 (profile prod)" "  Label     $label" \
  "  Holder    $(id -un) on build-runner-7.ci.example.net, pid $pid, dlock run" \
  "To end this job:  on build-runner-7.ci.example.net: kill $pid" \
  'Or from here:     dlock force-release nightly/customer-report --reason TEXT'; do
  grep -qxF "$line" screen || fail "show does not say \"$line\": $(<screen)"
done
screen 80 "$DLOCK force-release nightly/customer-report" 'Type "yes"'
for line in "  Label     $label" 'If you break this lock:' \
  '  - build-runner-7 ends report-generator.sh (SIGTERM, then SIGKILL)' '  - the lock is free at once'; do
  grep -qxF -- "$line" screen || fail "force-release does not say \"$line\": $(<screen)"
done
ends_tmux
touch go
wait "${holders[@]}"
