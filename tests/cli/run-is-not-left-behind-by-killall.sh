#!/usr/bin/env bash
# Killing dlock by its name, as killall -9 dlock and pkill -9 -f dlock do, leaves nothing of the job: the supervisor has
# another name and another command line, and ends the job.  ps shows `dlock run ...` once.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/tree.sh"
need killall pkill

cd "$tmp"
name=dlk$$            # no other dlock of this machine is to be killed
cp "$DLOCK" "$name"
secret=key-of-$name

supervisor() { pgrep -f "^lock supervisor for pid $launcher\$"; }

for kill in "killall -9 $name" "pkill -9 -x $name" "pkill -9 -f $secret"; do
  "./$name" run -q -k "$secret" -- ./tree 2>err &
  launcher=$!
  wait_until 30 tree_is_grown
  assert_equal "$launcher" "$(pgrep -f -- "$secret")" "the processes with the command line of dlock"
  assert_equal "lock supervisor" "$(ps -o comm= -p "$(supervisor)")" "the name of the supervisor"
  for task in /proc/"$(supervisor)"/task/*; do
    assert_lacks "$(<"$task/comm")" "$name" "the name of a thread of the supervisor"
  done
  $kill
  wait "$launcher" 2>/dev/null || true
  wait_until 10 is_free "$secret"
  assert_felled "$kill"
done

# A command line that is shorter than the title, and an environment that is longer.
env -i PATH="$PATH" DLOCK_BACKEND="$DLOCK_BACKEND" "./$name" run -k a -- ./tree &
launcher=$!
wait_until 30 tree_is_grown
supervisor >/dev/null || fail "the supervisor has no title: $(pgrep -alf "$launcher")"
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null || true
wait_until 10 is_free a
assert_felled "a short command line"

# The command has the environment that dlock had.
expect_status 0 env A=b C="d e" "./$name" run -q -k a -- bash -c '[[ $A == b && $C == "d e" && $DLOCK_KEY == a ]]'
