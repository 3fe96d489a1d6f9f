#!/usr/bin/env bash
# The crontab line of README.md and of the manual page works with the environment of cron, and skips a run
# without a word while the last one is at work.
. "$(dirname "$0")/lib.sh"

cd "$tmp"

# The locks of this test are the default of this user; cron sets HOME.
mkdir -p home/.config/dlock
echo "{\"backend\": \"$DLOCK_BACKEND\"}" >home/.config/dlock/config.json
chmod 600 home/.config/dlock/config.json

# As cron on Debian runs a line of "crontab -e".
as_cron() { env -i HOME="$HOME" LOGNAME=me SHELL=/bin/sh PATH=/usr/bin:/bin /bin/sh -c "$1"; }

# The recipe of a file, with this dlock and this command in place of its own.
recipe() {
  local line
  line=$(grep -F -- '*/5 * * * *' "$1" | sed 's/\\-/-/g')
  [[ $line =~ ^\ *'*/5 * * * * /usr/local/bin/dlock '(.*)' -- ./sync-all'$ ]] ||
    fail "$1 has no crontab line with the path of dlock: $line"
  echo "$DLOCK ${BASH_REMATCH[1]} -- $2"
}

for file in README.md man/dlock.1; do
  file=$TEST_SOURCE/$file
  rm -f held go
  skipped=$(recipe "$file" "touch $tmp/overlap")
  as_cron "$(recipe "$file" "sh -c 'touch $tmp/held; until test -e $tmp/go; do sleep 0.02; done'")" &
  wait_until 30 test -e held
  got=0
  as_cron "$skipped" >out 2>&1 || got=$?
  assert_equal 0 "$got" "status of a run that is skipped"
  assert_equal '' "$(<out)" "what cron would mail of a run that is skipped"
  [[ ! -e overlap ]] || fail "OVERLAP: two runs at once"
  touch go
  wait $! || fail "the run that held the lock ended with status $?"
  assert_equal report "$(as_cron "$(recipe "$file" 'echo report')" 2>&1)" "what cron mails of a run"
done
