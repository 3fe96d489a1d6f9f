#!/usr/bin/env bash
# The recipes for shell scripts: each deploys under the lock, gives it back, also if the deployment fails, and does not
# deploy if another has the lock.  And those for laptops, readers and slots, and for a job that hangs.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/recipe.sh"
need dash bash zsh fish git

prod_is_redis
export DLOCK_BACKEND=prod
for step in build deploy; do
  executable $step.sh <<SH
#!/bin/sh
dlock run -qn -k deploy -- true 2>/dev/null
[ \$? = 75 ] || [ "\${DLOCK_SUPERVISORS-}" ] || touch unlocked
touch $step.ran
exit \${FAILS-0}
SH
done

# tries SCRIPT PROGRAM...: it deploys under the lock; also if that fails, and if it cannot have the lock, all is as it
# should be.
tries() {
  local script=$1 fails got token
  shift
  for fails in 0 3; do
    rm -f ./*.ran unlocked
    got=0
    FAILS=$fails "$@" "./$script" >said 2>&1 || got=$?
    assert_equal "$fails" "$got" "status of $* $script: $(<said)"
    [[ -e deploy.ran ]] || fail "$* $script does not deploy"
    [[ ! -e unlocked ]] || fail "$* $script deploys without the lock"
    wait_until 30 is_free deploy
  done
  rm -f ./*.ran
  token=$(dlock acquire -k deploy --ttl 10m)
  got=0
  DLOCK_WAIT=0 "$@" "./$script" >said 2>&1 || got=$?
  assert_equal 75 "$got" "status of $* $script while the lock is held: $(<said)"
  [[ ! -e deploy.ran ]] || fail "$* $script deploys while another has the lock"
  DLOCK_KEY=deploy DLOCK_TOKEN=$token dlock release -k deploy
}
write_recipes script acquire-subshell acquire-ttl fish laptops readers slots hangs unreachable
for shell in dash bash zsh; do
  tries script $shell
  tries acquire-ttl $shell
done
tries acquire-subshell bash
tries fish fish --no-config
{ sed '$d' script; recipe acquire-trap; echo './deploy.sh'; } >with-trap
tries with-trap dash
{ echo 'set -e'; recipe script | sed 's/ || exit//'; } >with-set-e
tries with-set-e bash
{ echo '#!/bin/sh'; recipe wrap-itself; echo './deploy.sh "$@"'; } | executable wrapped
tries wrapped env

# What happened.
recipe status | sed 's/-w 60/-w 0/' >what-happened
assert_equal deployed "$(sh ./what-happened 2>&1)"
assert_equal failed "$(FAILS=3 sh ./what-happened 2>&1)"
token=$(dlock acquire -k deploy --ttl 10m)
assert_contains "$(sh ./what-happened 2>&1)" "another job is deploying"
DLOCK_KEY=deploy DLOCK_TOKEN=$token dlock release -k deploy
executable deploy.sh <<'SH'
#!/bin/sh
dlock force-release deploy -y --reason test
exec sleep 1000
SH
assert_contains "$(sh ./what-happened 2>&1)" "lost the lock: check what ./deploy.sh has done"

# Laptops: the label says who deploys what.
git init -q .
git -c user.name=me -c user.email=me@example.net commit -q --allow-empty -m 'fix the roof'
executable deploy.sh <<'SH'
#!/bin/sh
dlock show deploy >shown
SH
USER=ann sh ./laptops
assert_contains "$(<shown)" "Label     ann: fix the roof"

# Readers share the lock, the writer does not.
executable query.sh <<<$'#!/bin/sh\ndlock run -n -k catalogue --shared -- sh -c "echo \\$DLOCK_FENCE" >>reads'
executable rebuild.sh <<<$'#!/bin/sh\ntouch rebuilt'
sh -e ./readers
[[ -s reads && -e rebuilt ]] || fail "one of the two did not run"

# Up to four, each with a number.
executable train.sh <<'SH'
#!/bin/sh
echo "$2" >>gpus
until test -e trained; do sleep 0.02; done
SH
: >gpus
pids=()
for i in 1 2 3 4; do
  sh ./slots &
  pids[i]=$!
done
four() { (($(wc -l <gpus) == 4)); }
wait_until 30 four
assert_equal "1 2 3 4" "$(sort gpus | xargs)" "numbers"
touch trained
wait "${pids[@]}"

# A job that hangs, found and ended.
hangs() {
  dlock run -b prod -k nightly-report -- sh -c 'touch started; exec sleep 1000' 2>err &
  wait_until 30 test -e started
  rm started
}
sed -i 's/  *#.*//' hangs
unset DLOCK_BACKEND
hangs
assert_contains "$(sh -c "$(sed -n 1p hangs)")" nightly-report
sh -c "$(sed -n 2p hangs)" >shown
pid=$(sed -n 's/.*, pid \([0-9]*\), dlock run/\1/p' shown)
executable bin/ssh <<<$'#!/bin/sh\n[ "$1" = web-3 ] || exit 1\nshift\nexec sh -c "$*"'
sh -c "$(sed -n "3s/4121/$pid/p" hangs)"
expect_status 143 wait $!
hangs
sh -c "$(<unreachable) --yes" 2>said || fail "$(<said)"
expect_status 79 wait $!
assert_contains "$(<err)" hangs
