#!/usr/bin/env bash
# The command finds what dlock found: descriptors, signals, limits and environment, with DLOCK_KEY,
# DLOCK_TOKEN, DLOCK_FENCE, their plurals and DLOCK_SUPERVISORS the only difference.
. "$(dirname "$0")/lib.sh"

cd "$tmp"
run=("$DLOCK" run --key job --)

# compare WHAT PREFIX... -- COMMAND...: the command prints the same with dlock before it as without.
# The prefix (env, sh -c '... exec "$@"' sh) sets up the world in both cases.
compare() {
  local what=$1 prefix=()
  shift
  while [[ $1 != -- ]]; do
    prefix+=("$1")
    shift
  done
  shift
  "${prefix[@]}" "$@" >out 2>err
  mv out without
  "${prefix[@]}" "${run[@]}" "$@" >out 2>err || fail "$what: status $? with dlock: $(<err)"
  [[ -s without ]] || fail "$what: the command prints nothing"
  [[ ! -s err ]] || fail "$what: dlock says: $(<err)"
  diff without out >changes || fail "$what: with dlock it is not as it was: $(<changes)"
}

# Descriptors: those of dlock's caller and none of dlock's own.
list=(find /proc/self/fd/ -type l -printf '%f %l\n')
list_fds=(bash -c '"$@" | sed "s|/proc/[0-9]*|/proc/PID|; s|:\[[0-9]*\]||" | sort -n' bash "${list[@]}")
compare "descriptors" env -- "${list_fds[@]}"
touch input both
exec 3>log 7<input 42<>both 255>&3
compare "descriptors that the caller opened" env -- "${list_fds[@]}"
"${run[@]}" sh -c 'echo through >&3'
assert_equal through "$(<log)" "what the command wrote on an inherited fd 3"
exec 3>&- 7<&- 42>&- 255>&-

# Descriptors 0, 1 and 2 closed: closed in the command too, and nothing else lands there.
# shellcheck disable=SC2016,SC2034  # for the inner shell, and used by eval
standard='open=; for fd in 0 1 2; do [[ ! -e /proc/$$/fd/$fd ]] || open+=$fd; done
  echo "open: $open" >"$0"; exit 7'
for redirections in '<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
  got=0
  rm -f standard status
  eval "\"\$DLOCK\" run -k job --status-file status -- bash -c \"\$standard\" standard $redirections" || got=$?
  assert_equal 7 "$got" "exit status of dlock run started with $redirections"
  want=012
  [[ $redirections != '<'* ]] || want=${want/0/}
  [[ $redirections != *' >'* && $redirections != '>'* ]] || want=${want/1/}
  [[ $redirections != *2* ]] || want=${want/2/}
  assert_equal "open: $want" "$(<standard)" "started with $redirections, the command has"
  assert_contains "$(<status)" '"exit_status":7' "status file of dlock run started with $redirections"
  [[ ! -s "$locks/job" || $(head -c 7 "$locks/job") == 'dlock1 ' ]] ||
    fail "started with $redirections, something was written into the lock file"
done

# Signals: dispositions and mask.
signals=(grep -E '^(Sig(Blk|Ign|Cgt)|Seccomp|NoNewPrivs|Cap|Umask|Groups)' /proc/self/status)
compare "default signals" env --default-signal -- "${signals[@]}"
env --default-signal "${run[@]}" grep -qx 'SigIgn:.0*' /proc/self/status ||
  fail "started with nothing ignored, the command ignores signals (SIGPIPE?)"
for ignored in HUP INT CHLD PIPE HUP,INT,QUIT,TERM,CHLD,PIPE,TSTP,USR1,RTMIN+3; do
  compare "SIG${ignored} ignored" env --default-signal --ignore-signal="$ignored" -- "${signals[@]}"
done
compare "nohup" nohup -- "${signals[@]}"
# shellcheck disable=SC2016
compare "trap '' INT" bash -c 'trap "" INT; exec "$@"' bash -- "${signals[@]}"
for blocked in USR1 TERM,CHLD,CONT RTMIN+3; do
  compare "SIG${blocked} blocked" env --default-signal --block-signal="$blocked" -- "${signals[@]}"
done
compare "all signals blocked" env --default-signal --block-signal -- "${signals[@]}"

# The rest of what a process inherits.
compare "limits" bash -c 'ulimit -S -c 0 -n 100; exec "$@"' bash -- cat /proc/self/limits
compare "default limits" env -- cat /proc/self/limits
compare "umask" bash -c 'umask 027; exec "$@"' bash -- "${signals[@]}"
compare "niceness, session and process group" nice -n 3 -- ps -o ni=,sid=,pgid= -p "$$"
compare "oom_score_adj" env -- cat /proc/self/oom_score_adj
compare "working directory" env -C / -- pwd
# shellcheck disable=SC2016
"${run[@]}" sh -c 'ps -o pgid=,sid=,tty= -p $$' >out
assert_equal "$(ps -o pgid=,sid=,tty= -p $$)" "$(<out)" "group, session and terminal of the command"

# Environment: its own, byte by byte, and the three variables.
clean=(env -i A=1 'B=x=y z' EMPTY= $'LINES=a\nb' $'BYTES=\377\376' DLOCKED=1 "DLOCK_BACKEND=file://$locks")
"${clean[@]}" /usr/bin/env -0 | sort -z >without
"${clean[@]}" "${run[@]}" /usr/bin/env -0 | sort -z >out
LC_ALL=C grep -azEv '^DLOCK_(KEYS?|TOKENS?|FENCES?|SUPERVISORS)=' out >rest
cmp without rest || fail "dlock changes more than these in the environment: $(tr '\0' ' ' <rest)"
grep -azqx 'DLOCK_KEY=job' out || fail "DLOCK_KEY is not the key"
grep -azqx 'DLOCK_KEYS=job' out || fail "DLOCK_KEYS is not the key"
grep -azqEx 'DLOCK_TOKEN=[0-9a-f]{32}' out || fail "DLOCK_TOKEN is not 32 hex digits"
grep -azqEx 'DLOCK_SUPERVISORS=[0-9a-f]{32},[+][0-9a-f]{32}' out || fail "DLOCK_SUPERVISORS is not one run"
first=$(grep -azEx 'DLOCK_FENCE=[1-9][0-9]*' out | tr -d '\0') || fail "DLOCK_FENCE is no number"

# What an outer lock said is replaced, and the fence grows.
"${clean[@]}" DLOCK_KEY=old DLOCK_TOKEN=old DLOCK_FENCE=0 DLOCK_KEYS=old DLOCK_TOKENS=old DLOCK_FENCES=0 DLOCK_SLOT=0 "${run[@]}" /usr/bin/env -0 >out
assert_equal 6 "$(grep -azcE '^DLOCK_(KEYS?|TOKENS?|FENCES?|SLOT)=' out)" "DLOCK_ variables of the command"
if grep -azqE '=old$|^DLOCK_FENCES?=0$' out; then fail "an outer lock's variables reach the command"; fi
second=$(grep -az '^DLOCK_FENCE=' out | tr -d '\0')
((${second#*=} > ${first#*=})) || fail "$second does not come after $first"

# A backend that has no fence to give (here: a lock file of somebody else's) leaves none.
echo 'not by dlock' >"$locks/foreign"
DLOCK_FENCE=7 DLOCK_FENCES=7 "$DLOCK" run -q -k foreign -- env >out
assert_lacks "$(<out)" DLOCK_FENCE "environment of a command whose lock has no fence"
assert_contains "$(<out)" DLOCK_TOKEN= "environment of a command whose lock has no fence"
