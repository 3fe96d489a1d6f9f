#!/usr/bin/env bash
# A password, wherever it comes from, is in no message, however much dlock is to say, in no record, no
# status file, no environment that did not have it, and on no command line.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
secret=5ecretOfMine
wrong=wr0ngOfMine
start_redis a
rcli a config set requirepass "$secret" >/dev/null
server() { REDISCLI_AUTH=$secret rcli a "$@"; }
address=127.0.0.1:${redis_port[a]}

(umask 077
  echo "$secret" >file
  echo "$wrong" >wrong
  cat >config.json <<JSON
{"backends": {"good": {"url": "redis://:$secret@$address"},
              "bad": {"url": "redis://:$wrong@$address"},
              "nowhere": {"url": "redis://:$secret@127.0.0.1:1"}}}
JSON
)

# hidden TEXT WHERE: neither password is in this text.
hidden() {
  assert_lacks "$1" "$secret" "$2"
  assert_lacks "$1" "$wrong" "$2"
}
queued() { [[ $(server zcard '{dlock:job}:queue') == "$1" ]]; }
# Of all processes that have this word for an argument, as dlock and what it runs have.
command_lines() {
  local file
  while read -r file; do
    tr '\0' ' ' <"$file" || true  # it may have ended
    echo
  done < <(grep -lzsxF "mark-$$" /proc/[0-9]*/cmdline || true)
}
record() { # all that the server has
  local key
  while read -r key; do
    printf '%s: ' "$key"
    case $(server type "$key") in
      string) server get "$key" ;;
      zset) server zrange "$key" 0 -1 ;;
      *) server hgetall "$key" ;;
    esac
  done < <(server keys '*')
}

# ways good|bad|nowhere: sets the arrays url, file and profile, three ways to give a password that is
# right, wrong, or for a server that is not there.
ways() {
  url=(env "DLOCK_BACKEND=redis://:$secret@$address")
  file=(env "DLOCK_BACKEND=redis://$address" DLOCK_PASSWORD_FILE=file)
  # shellcheck disable=SC2034  # by name
  profile=(env DLOCK_CONFIG=config.json "DLOCK_BACKEND=$1")
  case $1 in
    bad)
      url[1]="DLOCK_BACKEND=redis://:$wrong@$address"
      file[2]=DLOCK_PASSWORD_FILE=wrong
      ;;
    nowhere)
      url[1]="DLOCK_BACKEND=redis://:$secret@127.0.0.1:1"
      file[1]=DLOCK_BACKEND=redis://127.0.0.1:1
      ;;
  esac
}

cat >job.sh <<'SH'
#!/bin/sh
env >"$1.env"
until test -e "$1.go"; do sleep 0.02; done
SH
chmod +x job.sh

for way in url file profile; do
  declare -n with=$way
  rm -f ./*.go ./*.env ./*.status

  # Success, and what the server, /proc and the child have of it; and a waiter.
  ways good
  "${with[@]}" "$DLOCK" run -vv --label "mark-$$" -k job --status-file one.status -- \
    ./job.sh one "mark-$$" 2>one.err &
  one=$!
  wait_until 20 test -s one.env
  "${with[@]}" "$DLOCK" run -vv -k job --status-file two.status -- ./job.sh two "mark-$$" 2>two.err &
  two=$!
  wait_until 20 queued 1
  hidden "$(record)" "what the server has, with the password in the $way"
  assert_contains "$(record)" "mark-$$" "what the server has"
  shown=$(command_lines)
  hidden "$shown" "the command lines, with the password in the $way"
  assert_contains "$shown" "$DLOCK run -vv" "the command lines"
  touch one.go
  wait "$one"
  wait_until 20 test -s two.env
  touch two.go
  wait "$two"
  for run in one two; do
    hidden "$(<$run.err)" "stderr at -vv of run $run, with the password in the $way"
    [[ -s $run.err ]] || fail "-vv says nothing"
    hidden "$(<$run.status)" "the status file, with the password in the $way"
    if [[ $way == url ]]; then
      assert_equal "${with[1]}" "$(grep -F "$secret" $run.env)" "what the child's environment has"
    else
      hidden "$(<$run.env)" "the child's environment, with the password in the $way"
    fi
  done

  # Refused, and unreachable.
  for state in bad nowhere; do
    ways $state
    got=0
    "${with[@]}" "$DLOCK" run -vv -k job --status-file status -- true 2>err || got=$?
    [[ $state == bad ]] && want=77 || want=69
    assert_equal "$want" "$got" "exit status ($(<err))"
    hidden "$(<err)" "stderr at -vv when it is $state, with the password in the $way"
    hidden "$(<status)" "the status file when it is $state, with the password in the $way"
  done
done

# On the command line it is in ps, and dlock says so, without the password.
"$DLOCK" run -vv -b "redis://:$secret@$address" -k job -- true 2>err
hidden "$(<err)" "stderr at -vv with the password in --backend"
assert_contains "$(<err)" "with ps" "stderr with the password in --backend"
# Where the URL itself is wrong, too.
for url in "redis://:$secret@h:99999" "redis://u:$secret@127.0.0.1:1/x" "redis://:$secret@a b"; do
  got=0
  DLOCK_BACKEND=$url "$DLOCK" run -vv -k job -- true 2>err || got=$?
  assert_equal 64 "$got" "exit status ($(<err))"
  hidden "$(<err)" "the message about a bad URL"
done
