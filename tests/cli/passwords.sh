# shellcheck shell=bash
# For the scripts that look for a password where none may be.  After lib.sh:
#   . "$(dirname "$0")/passwords.sh"
#   $secret, $wrong        the server's password, and one that is not
: "${tmp:?lib.sh comes first}"
secret=5ecretOfMine
wrong=wr0ngOfMine

# hidden TEXT WHERE: neither password is in this text.
hidden() {
  assert_lacks "$1" "$secret" "$2"
  assert_lacks "$1" "$wrong" "$2"
}

# hides_password WITH WITHOUT SERVER RECORDS...: neither is in any message, however much dlock is to say, in
# what the server has, in a status file, in an environment that did not have it, or on a command line.  WITH
# and WITHOUT a password are URLs, in which PASSWORD and SERVER are put in; RECORDS... prints all that the
# server has.
hides_password() {
  local way
  lib_with=$1 lib_without=$2 lib_server=$3
  shift 3
  lib_records=("$@")
  cat >job.sh <<'SH'
#!/bin/sh
env >"$1.env"
until test -e "$1.go"; do sleep 0.02; done
SH
  chmod +x job.sh
  (umask 077
    echo "$secret" >file
    echo "$wrong" >wrong
    cat >config.json <<JSON
{"backends": {"good": {"url": "$(lib_url "$secret" "$lib_server")"},
              "bad": {"url": "$(lib_url "$wrong" "$lib_server")"},
              "nowhere": {"url": "$(lib_url "$secret" 127.0.0.1:1)"}}}
JSON
  )
  for way in url file profile; do
    lib_hides_when_right "$way"
    lib_hides_when_refused "$way" bad 77
    lib_hides_when_refused "$way" nowhere 69
  done

  # On the command line it is in ps, and dlock says so, without the password.
  "$DLOCK" run -vv -b "$(lib_url "$secret" "$lib_server")" -k job -- true 2>err
  hidden "$(<err)" "stderr at -vv with the password in --backend"
  assert_contains "$(<err)" "with ps" "stderr with the password in --backend"
}

# hides_in_bad_url URL...: the message about a URL that is wrong has no password.
hides_in_bad_url() {
  local url got
  for url in "$@"; do
    got=0
    DLOCK_BACKEND=$url "$DLOCK" run -vv -k job -- true 2>err || got=$?
    ((got == 64 || got == 69)) || fail "exit status $got ($(<err))"
    hidden "$(<err)" "the message about a bad URL"
  done
}

# lib_url PASSWORD SERVER
lib_url() {
  local url=${lib_with/PASSWORD/$1}
  echo "${url/SERVER/$2}"
}

# lib_ways WAY good|bad|nowhere: sets the array `with`, what the password is given to dlock by.
lib_ways() {
  local password=$secret server=$lib_server file=file
  case $2 in
    bad) password=$wrong file=wrong ;;
    nowhere) server=127.0.0.1:1 ;;
  esac
  case $1 in
    url) with=(env "DLOCK_BACKEND=$(lib_url "$password" "$server")") ;;
    file) with=(env "DLOCK_BACKEND=${lib_without/SERVER/$server}" "DLOCK_PASSWORD_FILE=$file") ;;
    profile) with=(env DLOCK_CONFIG=config.json DLOCK_BACKEND="$2") ;;
  esac
}

lib_waits() { [[ $("${with[@]}" "$DLOCK" show -q -o waiting job) == *1 ]]; }

# Of all processes that have this word for an argument, as dlock and what it runs have.
lib_command_lines() {
  local file
  while read -r file; do
    tr '\0' ' ' <"$file" || true  # it may have ended
    echo
  done < <(grep -lzsxF "mark-$$" /proc/[0-9]*/cmdline || true)
}

# A holder, a waiter, and who looks.
lib_hides_when_right() {
  local with one two run shown
  local what="with the password in the $1"
  lib_ways "$1" good
  rm -f ./*.go ./*.env ./*.status
  "${with[@]}" "$DLOCK" run -vv --label "mark-$$" -k job --status-file one.status -- \
    ./job.sh one "mark-$$" 2>one.err &
  one=$!
  wait_until 20 test -s one.env
  "${with[@]}" "$DLOCK" run -vv -k job --status-file two.status -- ./job.sh two "mark-$$" 2>two.err &
  two=$!
  wait_until 20 lib_waits
  shown=$("${lib_records[@]}")
  hidden "$shown" "what the server has, $what"
  assert_contains "$shown" "mark-$$" "what the server has"
  shown=$(lib_command_lines)
  hidden "$shown" "the command lines, $what"
  assert_contains "$shown" "$DLOCK run -vv" "the command lines"
  shown=$("${with[@]}" "$DLOCK" show -vv job 2>&1; "${with[@]}" "$DLOCK" list -vv --json 2>&1)
  hidden "$shown" "what show and list say, $what"
  touch one.go
  wait "$one"
  wait_until 20 test -s two.env
  touch two.go
  wait "$two"
  for run in one two; do
    hidden "$(<$run.err)" "stderr at -vv of run $run, $what"
    assert_contains "$(<$run.err)" ' -> ' "stderr at -vv, which shows each exchange"
    hidden "$(<$run.status)" "the status file, $what"
    if [[ $1 == url ]]; then
      assert_equal "${with[1]}" "$(grep -F "$secret" $run.env)" "what the child's environment has"
    else
      hidden "$(<$run.env)" "the child's environment, $what"
    fi
  done
}

# lib_hides_when_refused WAY bad|nowhere STATUS
lib_hides_when_refused() {
  local with got=0
  lib_ways "$1" "$2"
  "${with[@]}" "$DLOCK" run -vv -k job --status-file status -- true 2>err || got=$?
  assert_equal "$3" "$got" "exit status when it is $2, with the password in the $1 ($(<err))"
  hidden "$(<err)" "stderr at -vv when it is $2, with the password in the $1"
  hidden "$(<status)" "the status file when it is $2, with the password in the $1"
}
