#!/usr/bin/env bash
# What cannot be done as asked is refused with status 64 before anything is touched, in one line on
# stderr that says what is wrong.
. "$(dirname "$0")/lib.sh"

cd "$tmp"

# refuses TEXT ARGUMENTS...: dlock ARGUMENTS exits with 64 and says TEXT in its one line.
refuses() {
  local text=$1 got=0 shown
  shift
  shown=$(printf ' %q' "$@")
  timeout 60 "$DLOCK" "$@" </dev/null >out 2>err || got=$?
  assert_equal 64 "$got" "exit status of dlock${shown:0:200}"
  assert_equal 1 "$(wc -l <err)" "lines on stderr of dlock${shown:0:200}"
  assert_contains "$(<err)" "dlock: " "stderr of dlock${shown:0:200}"
  assert_contains "$(<err)" "$text" "stderr of dlock${shown:0:200}"
  [[ ! -s out ]] || fail "stdout of dlock${shown:0:200}: $(<out)"
  (($(wc -c <err) < 700)) || fail "the message of dlock${shown:0:200} is longer than anybody reads"
  if LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]' err; then
    fail "control characters reach the terminal from dlock${shown:0:200}"
  fi
}
# bad TEXT OPTIONS...: dlock run with these options, and else well.
bad() {
  local text=$1
  shift
  refuses "$text" run -k job "$@" -- touch "$tmp/ran"
}

# Keys.
ran=(-- touch "$tmp/ran")
long=$(printf '%255s' '' | tr ' ' k)
refuses 'which lock? name it: dlock run --key NAME' run "${ran[@]}"
refuses 'the key is empty' run --key '' "${ran[@]}"
refuses 'the key is empty' run --key= "${ran[@]}"
refuses 'is 256 bytes long; the most is 255' run -k "${long}k" "${ran[@]}"
refuses 'is 257 bytes long' run -k "$long"$'\u00e9' "${ran[@]}"
refuses 'is 100000 bytes long' run -k "$(printf '%100000s' '' | tr ' ' k)" "${ran[@]}"
refuses 'control character' run -k $'two\nlines' "${ran[@]}"
refuses 'control character' run -k $'\e[31mred' "${ran[@]}"
refuses 'control character' run -k $'del\x7f' "${ran[@]}"
refuses 'control character' run -k $'c1\u009b' "${ran[@]}"
for bytes in $'\xff' $'a\xc3' $'\xc0\xaf' $'\xed\xa0\x80' $'\xf4\x90\x80\x80' $'\x80'; do
  refuses 'is not valid UTF-8' run -k "$bytes" "${ran[@]}"
done

# Durations.
bad '--ttl: "0" is out of range; it must be from 1s to 24h' --ttl 0
bad 'out of range; it must be from 1s to 24h' --ttl 0.999
bad 'out of range; it must be from 1s to 24h' --ttl 100ms
bad 'out of range; it must be from 1s to 24h' --ttl 87600h
bad 'out of range; it must be from 1s to 24h' --ttl 24h1ms
bad '--ttl: "-1" is negative' --ttl -1
bad '--ttl: "-1" is negative' --ttl=-1
for text in 5x nan inf 1e9h 0x10 '1 s' '1h30' 1s2 . 1.2.3 '+5' ' 5' s 99999999999999999999 ٣; do
  bad "--ttl: \"$text\" is not a duration such as 90s, 0.5 or 1h30m" --ttl "$text"
done
bad '--ttl: "" is not a duration' --ttl ''
bad '--wait: "-1" is negative' -w -1
bad '--wait: "soon" is not a duration' --wait soon
bad '--wait: "1e3" is not a duration' -w 1e3
bad '--max-hold: "-1s" is negative' --max-hold -1s
bad '--min-hold: "x" is not a duration' --min-hold x
bad '--connect-timeout: "0" is out of range' --connect-timeout 0
bad '--kill-after: must be less than half of the ttl, which is 30s' -b redis --kill-after 15
bad 'must be less than half of the ttl, which is 10s (--ttl)' -b redis --ttl 10 --kill-after 5s
bad 'must be less than half of the ttl' -b redis --ttl 10 --kill-after 1h
mkdir -m 0700 other
other=file://$tmp/other
expect_status 0 "$DLOCK" run -b "$other" -k job --kill-after 1h -- true  # there is no ttl
bad '--kill-after: "-1" is negative' --kill-after -1

# What looks like a value and is none.
bad '"-k=...": a short option takes its value without "="; write -k VALUE or --key=VALUE' -k=x
bad '"-w=...": a short option takes its value without "="; write -w VALUE or --wait=VALUE' -w=5
bad '"-nw=...": a short option takes its value without "="; write -w VALUE' -nw=5
bad '"-b=...": a short option' -b=redis://u:hunter2@h
assert_lacks "$(<err)" hunter2 "the message about -b="
bad '"-v=...": -v takes no value' -v=2
bad '"-qn=...": -n takes no value' -qn=1
bad '--nonblock= has an empty value; write --nonblock' --nonblock=
refuses '--key "a" is given twice' run -k a -k b -k a "${ran[@]}"
refuses '--key "a" is given twice' run -k a --key=a "${ran[@]}"
expect_status 0 "$DLOCK" run -b "$other" --label -k=x -k --label=y -- true  # values of options
expect_status 0 "$DLOCK" run -b "$other" -qnkjob=1 -- true
expect_status 0 "$DLOCK" run -b "$other" -k job -- test -k=x = -k=x         # arguments of the command

bad '--backend: bad database in the URL' -b redis://h/x --prefix ab

# Numbers and choices.
for number in 0 1025 x -1 1.5 '' 99999999999999999999 0x2; do
  bad "--slots: \"$number\" is not a number from 1 to 1024" --slots "$number"
done
for number in 256 x -1 1.5 '' 99999999999999999999 ' 1'; do
  bad "--conflict-exit-code: \"$number\" is not a number from 0 to 255" -E "$number"
done
bad '--leftovers: "all" is none of: ignore, wait, kill' --leftovers all
bad '--leftovers: "" is none of: ignore, wait, kill' --leftovers ''
bad '--on-lost: "TERM" is none of: term, kill, ignore' --on-lost TERM
bad '--label: is 1025 bytes long; the most is 1024' --label "$(printf '%1025s' '' | tr ' ' l)"
bad '--label: holds a control character' --label $'two\nlines'
bad '--label: is not valid UTF-8' --label $'\xff'
bad '--status-file: is empty' --status-file ''

# Backends and URLs.
bad 'there is no backend "nope"; backends: file, redis, redlock, zookeeper, mysql-table, mysql-row' -b nope
bad 'there is no backend "FILE"' -b FILE
bad 'there is no backend "http"; backends' -b http://host/
bad '--backend: is empty' -b ''
bad 'the file backend has no host; a directory has three slashes' -b file://var/lock
bad 'the file backend has no host' -b "file://user@$locks"
bad 'the file backend has no options' -b "file://$locks?ttl=5"
bad 'names no directory' -b file:///
bad 'a # must be written %23' -b "file://$locks#x"
bad 'bad %-escape' -b "file://$locks%zz"
bad 'bad %-escape' -b "file://$locks%00"
bad 'bad %-escape' -b "file://$locks%ff"
bad 'bad port in the URL: must be 1 to 65535' -b redis://h:99999
bad 'bad port in the URL' -b redis://h:0
bad 'bad port in the URL' -b redis://h:
bad 'bad port in the URL' -b redis://h:x
bad 'a [ without a ] in the URL' -b 'redis://[::1'
bad 'bad host name' -b 'redis://a b'
bad 'no host name in the URL' -b redlock://a,,b
bad 'a name stands twice in the query of the URL' -b 'redis://h?a=1&a=2'
bad 'not a URL: it must begin with scheme://' -b ://host
bad 'not a URL: it must begin with scheme://' -b 'a b://host'
bad 'the file backend has no servers' -S host:1
bad '--prefix: the file backend has no prefix' --prefix x
bad 'the file backend has no password' --password-file "$tmp/password"
# Named in the list, and told apart from what does not exist, where it is not built in.
for backend in redis redlock zookeeper zk mysql-table mysql mysql-row mysql-version; do
  if "$DLOCK" backends --json | grep -qzP "\"$backend\"[^}]*\"built_in\": ?true"; then continue; fi
  got=0
  "$DLOCK" run -k job -b "$backend" -S 127.0.0.1:1 --connect-timeout 1 -- touch ran 2>err || got=$?
  [[ $got != 69 && $(<err) != *'which database? name it in the URL'* ]] || continue
  assert_contains "$(<err)" 'is not built into this dlock (built in: file' \
    "dlock run -b $backend, with status $got,"
done
# A password that is not where it belongs is not printed.
bad 'there is no such backend; a URL is as in redis://host or file:///directory' -b 'nope:hunter2@host'
assert_lacks "$(<err)" hunter2 "the message about a bad backend"
got=0
"$DLOCK" run -k job -b 'file://u:hunter2@h/x' -- touch "$tmp/ran" 2>err || got=$?
assert_equal 64 "$got" "exit status for a file URL with a password"
assert_lacks "$(<err)" hunter2 "the message about a file URL with a password"

# The command line.
refuses 'say what to do: dlock run --key NAME -- COMMAND'
refuses 'unknown command "bogus"; commands: run' bogus
refuses 'unknown command ""' ''
refuses 'unknown command "RUN"' RUN
refuses 'unknown option "--key" before the command' --key job run -- true
refuses 'no command; put it at the end, behind "--"' run
refuses 'no command; put it at the end, behind "--"' run -k job
refuses 'no command behind "--"' run -k job --
refuses 'put "--" before the command: dlock run [options] -- touch' run -k job touch ran
bad 'unexpected "odd" before "--"; the command goes behind it' odd
bad 'unknown option "--no-such-flag"' --no-such-flag
bad 'unknown option "--ket"' --ket=other
bad 'unknown option "-Z"' -Z
bad 'unknown option "--no-nonblock"' --no-nonblock
refuses '"--wait" needs a value' run -k job --wait -- touch ran
refuses '"-k" needs a value' run -k -- touch ran
bad '--nonblock: cannot be combined with --wait' --nonblock --wait 5
bad 'cannot be combined with' -n -w 0
bad '--shared: cannot be combined with --slots' --shared --slots 2
bad 'cannot be combined with' -q -v

# The environment is no better.
DLOCK_TTL=0 refuses 'DLOCK_TTL: "0" is out of range' run -k job "${ran[@]}"
DLOCK_SLOTS=x refuses 'DLOCK_SLOTS: "x" is not a number' run -k job "${ran[@]}"
DLOCK_NONBLOCK=maybe refuses 'DLOCK_NONBLOCK: "maybe" is neither true nor false' run -k job "${ran[@]}"
DLOCK_BACKEND=nope refuses 'DLOCK_BACKEND: there is no backend "nope"' run -k job "${ran[@]}"

[[ ! -e ran ]] || fail "a command was run by a command line that was refused"
assert_equal '' "$(ls -A "$locks")" "what is in the lock directory when all was refused"

# The other side of the limits is fine.
for key in "$long" ' ' '.' '..' 'a/b' $'\u202e' '*?[]' "';--" '-n' '%2F' $'\U1F512'; do
  "$DLOCK" run -n "--key=$key" --ttl 24h --kill-after 1 -E 0 -- true 2>err ||
    fail "a good key is refused: $key ($(<err))"
done
"$DLOCK" run -k slots --slots 1024 --ttl 1 -E 255 --wait 0 --label '' --max-hold 0 -- true
