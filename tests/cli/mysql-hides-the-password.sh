#!/usr/bin/env bash
# A password for MySQL, wherever it comes from, is in no message, however much dlock is to say, in no
# table, no status file, no environment that did not have it, and on no command line.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

cd "$tmp"
secret=5ecretOfMine
wrong=wr0ngOfMine
start_mysql a
sql a "SET PASSWORD FOR app@'%' = PASSWORD('$secret')"
address=127.0.0.1:${mysql_port[a]}/test

# hidden TEXT WHERE: neither password is in this text.
hidden() {
  assert_lacks "$1" "$secret" "$2"
  assert_lacks "$1" "$wrong" "$2"
}
# Of all processes that have this word for an argument, as dlock and what it runs have.
command_lines() {
  local file
  while read -r file; do
    tr '\0' ' ' <"$file" || true  # it may have ended
    echo
  done < <(grep -lzsxF "mark-$$" /proc/[0-9]*/cmdline || true)
}
tables() { sql a 'SELECT * FROM dlock_keys; SELECT * FROM dlock_locks'; }
waits() { [[ $("$@" "$DLOCK" show -o waiting job) == *1 ]]; }

cat >job.sh <<'SH'
#!/bin/sh
env >"$1.env"
until test -e "$1.go"; do sleep 0.02; done
SH
chmod +x job.sh

for method in table row version; do
  scheme=mysql-$method
  (umask 077
    echo "$secret" >file
    echo "$wrong" >wrong
    cat >config.json <<JSON
{"backends": {"good": {"url": "$scheme://app:$secret@$address"},
              "bad": {"url": "$scheme://app:$wrong@$address"}}}
JSON
  )
  for way in url file profile; do
    case $way in
      url)
        good=(env "DLOCK_BACKEND=$scheme://app:$secret@$address")
        bad=(env "DLOCK_BACKEND=$scheme://app:$wrong@$address")
        ;;
      file)
        good=(env "DLOCK_BACKEND=$scheme://app@$address" DLOCK_PASSWORD_FILE=file)
        bad=(env "DLOCK_BACKEND=$scheme://app@$address" DLOCK_PASSWORD_FILE=wrong)
        ;;
      profile)
        good=(env DLOCK_CONFIG=config.json DLOCK_BACKEND=good)
        bad=(env DLOCK_CONFIG=config.json DLOCK_BACKEND=bad)
        ;;
    esac
    what="with the password of $scheme in the $way"
    rm -f ./*.go ./*.env ./*.status

    "${good[@]}" "$DLOCK" run -vv --label "mark-$$" -k job --status-file one.status -- \
      ./job.sh one "mark-$$" 2>one.err &
    one=$!
    wait_until 20 test -s one.env
    "${good[@]}" "$DLOCK" run -vv -k job --status-file two.status -- ./job.sh two "mark-$$" 2>two.err &
    two=$!
    wait_until 20 waits "${good[@]}"
    hidden "$(tables)" "what the server has, $what"
    assert_contains "$(tables)" "mark-$$" "what the server has"
    shown=$(command_lines)
    hidden "$shown" "the command lines, $what"
    assert_contains "$shown" "$DLOCK run -vv" "the command lines"
    looks=$("${good[@]}" "$DLOCK" show -vv job 2>&1; "${good[@]}" "$DLOCK" list -vv --json 2>&1)
    hidden "$looks" "what show and list say, $what"
    touch one.go
    wait "$one"
    wait_until 20 test -s two.env
    touch two.go
    wait "$two"
    for run in one two; do
      hidden "$(<$run.err)" "stderr at -vv of run $run, $what"
      [[ -s $run.err ]] || fail "-vv says nothing"
      hidden "$(<$run.status)" "the status file, $what"
      if [[ $way == url ]]; then
        assert_equal "${good[1]}" "$(grep -F "$secret" $run.env)" "what the child's environment has"
      else
        hidden "$(<$run.env)" "the child's environment, $what"
      fi
    done

    got=0
    "${bad[@]}" "$DLOCK" run -vv -k job --status-file status -- true 2>err || got=$?
    assert_equal 77 "$got" "exit status with the wrong password ($(<err))"
    hidden "$(<err)" "stderr at -vv when it is wrong, $what"
    hidden "$(<status)" "the status file when it is wrong, $what"
  done

  # On the command line it is in ps, and dlock says so, without the password.
  "$DLOCK" run -vv -b "$scheme://app:$secret@$address" -k job -- true 2>err
  hidden "$(<err)" "stderr at -vv with the password in --backend"
  assert_contains "$(<err)" "with ps" "stderr with the password in --backend"
done
for url in "mysql://u:$secret@h:99999/x" "mysql://u:$secret@127.0.0.1:1" "mysql://u:$secret@a b/x" \
  "mysql://u:$secret@h/x?tls=maybe" "mysql://u:$secret@127.0.0.1:1/x"; do
  got=0
  DLOCK_BACKEND=$url "$DLOCK" run -vv -k job -- true 2>err || got=$?
  ((got == 64 || got == 69)) || fail "exit status $got ($(<err))"
  hidden "$(<err)" "the message about a bad URL"
done
