#!/usr/bin/env bash
# The processes that keep a lock for a script around a run are none of its leftovers: with --leftovers wait it does not wait
# for them, or each would wait for the other; and whatever ends the job leaves them alone, since the script counts on them.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

# script JOB OPTIONS: a run, and in it `acquire --while` for the script; then JOB.
cat >script <<'SH2'
#!/bin/bash
export outer=$$
timeout 60 "$DLOCK" run -k job "${@:2}" -- \
  sh -c '"$DLOCK" acquire -q -k kept --while "$outer" >token; '"$1" 2>err &
echo $! >run
wait $!
echo $? >status
until [[ -e end ]]; do sleep 0.02; done
SH2
chmod +x script
# begin ARGUMENTS: the script, and it has the lock.
begin() {
  rm -f status end token left
  ./script "$@" &
  script=$!
  wait_until 30 test -s token
}
# ends STATUS: so ends the run; and the script has its lock for as long as it goes on.
ends() {
  wait_until 30 test -s status
  assert_equal "$1" "$(<status)" "exit status of the run ($(<err))"
  assert_free job
  assert_held kept
  touch end
  expect_status 0 wait "$script"
  wait_until 10 is_free kept
}

# A process that becomes a daemon at the last moment is waited for.
begin '(sleep 0.7; touch left) & exit 3' --leftovers wait
ends 3
[[ -e left ]] || fail "another process was not waited for"
assert_equal '' "$(<err)" "stderr of the run"

begin 'sleep 600 & exit 3' --leftovers kill
ends 3
begin 'sleep 600' --max-hold 1
ends 124
begin 'sleep 600'
kill -KILL "$(tree_of "$(<run)" | sed -n 3p)"  # below timeout(1) and the launcher
ends 79
