#!/usr/bin/env bash
# ctest: cost 25
# On real terminals of 60, 80 and 120 columns no line of "dlock watch" wraps, and hosts and pids are whole.  It is redrawn
# in place, after a resize and after Ctrl-Z too; through an outage the last table stays; q ends it, and leaves the table
# and the terminal as they were.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need tmux
cd "$tmp"
start_redis server appendonly yes
in_world() { unshare --uts bash -c 'hostname build-runner-7.ci.example.net; exec "$@"' sh "$@"; }
in_world true 2>/dev/null || { echo "not tried: the host name cannot be set" && exit 77; }
export DLOCK_BACKEND=${redis_url[server]} DLOCK_CONNECT_TIMEOUT=1

# job NAME KEY OPTION...: a holder that ends when NAME.go is there.
declare -A pid=()
job() {
  in_world "$DLOCK" run -q -k "$2" "${@:3}" -- sh -c "touch $1.held; until test -e $1.go; do sleep 0.02; done" &
  pid[$1]=$!
  wait_until 30 test -e "$1.held"
}
ends() {
  touch "$1.go"
  wait "${pid[$1]}" || true
}
job one nightly/customer-report-of-all-branches --label https://gitlab.example.com/infra/deploy/-/jobs/48213377
its_pid=$("$DLOCK" list -o pid nightly/ | tail -n 1)

tmux=(tmux -L "dlock-$$" -f /dev/null)
at_exit() { "${tmux[@]}" kill-server 2>/dev/null || true; }
"${tmux[@]}" new-session -d -s it -x 80 -y 12 "PS1='prompt> ' bash --norc"
type_in() { "${tmux[@]}" send-keys -t it "$@"; }
# shows TEXT: the terminal shows it, as it is in ./screen.
shows() {
  "${tmux[@]}" capture-pane -p -t it >screen
  grep -qF -- "$1" screen
}
shows_not() { ! shows "$1"; }
# is_in STYLE TEXT: 1 is bold, 2 is dim.
is_in() { "${tmux[@]}" capture-pane -e -p -t it | grep -qE -- $'\e\\['"(0;)?$1m("$'\e'"\[[0-9]+m)*$2"; }
is_drawn() { shows ', every ' && shows_not 'prompt>'; }
run_watch() { type_in "$*" Enter && wait_until 30 is_drawn; }

wait_until 30 shows 'prompt>'
type_in 'echo what was there before' Enter
run_watch "$DLOCK" watch
for columns in 60 120 80; do
  "${tmux[@]}" resize-window -t it -x $columns -y 12
  is_so_wide() {
    shows ', every ' && grep -qE "build-runner-7 +$its_pid( |$)" screen &&
      [[ $(wc -L <screen) -le $columns && $(grep -c . screen) == 3 ]] && { ((columns < 120)) || grep -qF /infra/ screen; }
  }
  wait_until 30 is_so_wide
  [[ $(head -n 1 screen) =~ ^[0-2][0-9]:[0-5][0-9]:[0-5][0-9],\ every\ 2s:\ 1\ lock\ in\ redis://127 ]] ||
    fail "the first line on $columns columns: $(<screen)"
done

# What is new is bold, what has gone is dim.
job two two
wait_until 30 is_in 1 'two '
job three three
ends two
wait_until 30 is_in 2 'two '
wait_until 30 shows_not 'two '

# More rows than lines: those that have held longest.
for i in {1..9}; do job "more$i" "a-later-job-$i"; done
wait_until 30 shows '… and 3 more'
shows nightly/ || fail "the longest held is not shown: $(<screen)"
assert_equal 11 "$(grep -c . screen)" "lines of a full screen"
for i in {1..9}; do ends "more$i"; done
wait_until 30 shows_not a-later-job

# An outage.
stop_redis server
wait_until 30 shows 'no answer for 3s, shown as of '
shows nightly/ || fail "the table is gone: $(<screen)"
restart_redis server
wait_until 30 shows ', every 2s: '
job four four
wait_until 30 shows 'four '

# Ctrl-Z, fg, and in the background, where it must not stop by itself.
settings() {
  rm -f stty
  type_in 'stty -g >stty.new; mv stty.new stty' Enter
  wait_until 30 test -e stty
}
type_in C-z
wait_until 30 shows 'Stopped'
settings
mv stty before
type_in bg Enter
wait_until 30 shows 'watch &'
type_in 'echo still here' Enter
wait_until 30 shows 'still here'
sleep 1.5
type_in 'jobs' Enter
wait_until 30 shows 'Running'
type_in fg Enter
wait_until 30 is_drawn

# q, Ctrl-C and SIGTERM.
for key in q C-c SIGTERM; do
  [[ $key == q ]] || run_watch clear ';' "$DLOCK" watch
  shows 'four ' || fail "the table is not there: $(<screen)"
  if [[ $key == SIG* ]]; then pkill -TERM -P "$("${tmux[@]}" display -p -t it '#{pane_pid}')"; else type_in $key; fi
  wait_until 30 shows 'prompt>'
  type_in 'echo status $?' Enter
  wait_until 30 shows 'status 0'
  shows 'four ' || fail "the table did not stay after $key: $(<screen)"
  settings
  cmp before stty || fail "settings of the terminal after $key"
done

run_watch clear ';' "$DLOCK" watch --exit-when free four
type_in q
wait_until 30 shows 'prompt>'
type_in 'echo status $?' Enter
wait_until 30 shows 'status 1'

# Without keys, and without styles.
run_watch clear ';' NO_COLOR=1 "$DLOCK" watch '</dev/null'
job five five
wait_until 30 shows 'five '
is_in 1 '' && fail "there is bold text"
ends five
wait_until 30 shows_not 'five '
type_in q
type_in C-c
wait_until 30 shows 'prompt>'

# Several profiles: the first line names those that are silent.
(umask 077 && cat >config.json) <<JSON
{"backends": {"prod": {"url": "$DLOCK_BACKEND"}, "test": {"url": "redis://127.0.0.1:1"}}}
JSON
run_watch clear ';' "$DLOCK" watch --all --config "$tmp/config.json"
wait_until 30 shows 'no answer from test (3s); '
grep -qE '^BACKEND +KEY' screen || fail "no column: $(<screen)"
grep -qE '^prod +four ' screen || fail "no profile: $(<screen)"
type_in q
wait_until 30 shows 'prompt>'

# A server that does not answer at the start, and one that refuses us.
pause_redis server
type_in "clear; $DLOCK watch" Enter
wait_until 30 shows 'no answer for 3s: redis 127.0.0.1'
resume_redis server
wait_until 30 shows ', every 2s: '
type_in q
rcli server CONFIG SET requirepass secret >/dev/null
type_in "clear; $DLOCK watch; echo status \$?" Enter
wait_until 30 shows 'status 77'
ends one
ends three
ends four
