#!/usr/bin/env bash
# A config file that is wrong, or that others could have written, is refused with status 78 and one
# line that names file, line and key; a good one comes behind the environment and the flags.
. "$(dirname "$0")/lib.sh"

need python3
cd "$tmp"
unset DLOCK_BACKEND  # it would hide what the file says
chmod 700 "$tmp"
config=$tmp/config.json
dlock=("$DLOCK" run --config "$config" -k job)

# refuses TEXT: the config file as it is leads to status 78 and one line with TEXT; nothing is run.
refuses() {
  local got=0
  timeout 60 "${dlock[@]}" -- touch ran </dev/null >out 2>err || got=$?
  assert_equal 78 "$got" "exit status where '$1' was expected ($(<err))"
  assert_equal 1 "$(wc -l <err)" "lines on stderr where '$1' was expected"
  assert_contains "$(<err)" "dlock: "
  assert_contains "$(<err)" "$config"
  assert_contains "$(<err)" "$1"
  [[ ! -s out ]] || fail "stdout where '$1' was expected: $(<out)"
  [[ ! -e ran ]] || fail "the command was run where '$1' was expected"
}
# bad TEXT LINE...: so it is with these lines.
bad() {
  local text=$1
  shift
  printf '%s\n' "$@" >"$config"
  chmod 600 "$config"
  refuses "$text"
}
# good LINE...: runs.
good() {
  local got=0
  printf '%s\n' "$@" >"$config"
  chmod 600 "$config"
  "${dlock[@]}" -- true 2>err || got=$?
  assert_equal "0/" "$got/$(<err)" "exit status and stderr with the config $*"
}
backend="\"backend\": \"file://$locks\""
good "{$backend}"

# Syntax, with the line.
bad "$config:3: " "{$backend," '"ttl": 5,' '}'
bad "$config:2: " '{' '"ttl" 5}'
bad "$config:2: " '{"ttl": 5' "$backend}"
bad "$config:1: " "{'ttl': 5}"
bad 'unexpected end of input' ''
bad "$config:1: " '{"ttl": 5} x'
bad "$config:1: " '{"ttl": "5}'
bad "$config:1: " '{"ttl": 05}'
bad "$config:2: " '{"ttl": 5,' '// a comment' '"label": "x"}'
bad "$config:1: the file must hold a JSON object" '[]'
bad "$config:1: the file must hold a JSON object" '5'
printf '{"ttl": 5,\n"label": "\0"}' >"$config"
refuses "$config:2: holds a NUL byte"
bad "$config:2: \"label\" holds a NUL character" "{$backend," '"label": "a\u0000b"}'
bad "$config:2: is not valid UTF-8" "{$backend," $'"label": "\xff"}'
python3 -c 'print("[" * 100000)' >"$config"
refuses "$config:1: "

# Keys and types, with their names.
bad "$config:3: unknown key \"tll\"" "{$backend," '"label": "x",' '"tll": "5s"}'
bad "unknown key \"key\"" '{"key": "job"}'
bad "unknown key \"kill-after\"" '{"kill-after": 5}'
bad "unknown key \"url\"" '{"url": "redis://h"}'
bad "$config:2: \"ttl\" stands twice" '{"ttl": 5,' '"ttl": 6}'
bad "\"backends\" stands twice" '{"backends": {}, "backends": {}}'
bad "$config:1: \"ttl\" must be a duration" '{"ttl": true}'
bad "\"ttl\" must be a duration" '{"ttl": null}'
bad "\"ttl\" must be a duration" '{"ttl": [5]}'
bad "\"ttl\" must be a duration" '{"ttl": {}}'
bad "\"slots\" must be a number" '{"slots": "2"}'
bad "\"nonblock\" must be true or false" '{"nonblock": "yes"}'
bad "\"backend\" must be a string" '{"backend": 5}'
bad "\"servers\" must be a string or an array of strings" '{"servers": [1]}'
bad "\"backends\" must be an object of profiles" '{"backends": []}'
bad "profile \"p\" must be an object" '{"backends": {"p": 5}}'
bad "unknown key \"colour\" in a profile" '{"backends": {"p": {"url": "redis://h", "colour": 1}}}'
bad "$config:2: profile \"p\" has no \"url\"" '{"backends": {' '"p": {"ttl": 5}}}'
bad "profile \"p\" stands twice" '{"backends": {"p": {"url": "file:///x"}, "p": {"url": "file:///x"}}}'
bad "profile \"redis\" has the name of a backend" '{"backends": {"redis": {"url": "redis://h"}}}'

# Values that a flag could not have either.
bad "$config:1: ttl: \"0\" is out of range" "{\"ttl\": 0, $backend}"
bad "$config:2: slots: \"1025\" is not a number from 1 to 1024" "{$backend," '"slots": 1025}'
bad "conflict_exit_code: \"256\" is not a number" "{\"conflict_exit_code\": 256, $backend}"
bad "kill_after: must be less than half of the ttl" '{"kill_after": "20s", "backend": "redis"}'
bad "backend: there is no backend \"nope\"" '{"backend": "nope"}'
bad "leftovers: \"x\" is none of: ignore, wait, kill" "{\"leftovers\": \"x\", $backend}"
bad "$config:1: wait: \"soon\" is not a duration" "{\"wait\": \"soon\", \"backends\": {}, $backend}"
bad "$config:2: ttl: \"1h1\" is not a duration" "{$backend, \"backends\":" '{"p": {"url": "file:///x", "ttl": "1h1"}}}'

# Every command sees it, whether it needs the value or not.
printf '%s\n' "{$backend, \"wait\": \"10x\"}" >"$config"
for command in list 'show job' 'force-release --yes job' 'run -k job -- true' 'run -k job -w 5 -- true'; do
  got=0
  # shellcheck disable=SC2086  # words
  "$DLOCK" ${command%% *} --config "$config" ${command#"${command%% *}"} >out 2>err || got=$?
  assert_equal 78 "$got" "exit status of dlock $command with a bad value"
  assert_equal "dlock: $config:1: wait: \"10x\" is not a duration such as 90s, 0.5 or 1h30m" "$(<err)" "stderr"
done

# Who else could have written it, or read the password in it.
good "{$backend}"
chmod 644 "$config"
"${dlock[@]}" -- true
secret='{"backends": {"p": {"url": "redis://user:hunter2@127.0.0.1:1/"}}}'
printf '%s\n' "$secret" >"$config"
for mode in 644 640 604 610; do
  chmod "$mode" "$config"
  refuses "holds a password, and others can read it (mode 0$mode); run: chmod go-rwx $config"
  assert_lacks "$(<err)" hunter2 "the message about a readable password"
done
# Although that is no URL.
printf '%s\n' '{"backends": {"p": {"url": "mysql://db/app?user=app&password=100%hunter2"}}}' >"$config"
chmod 644 "$config"
refuses "holds a password, and others can read it (mode 0644); run: chmod go-rwx $config"
chmod 600 "$config"
bad "$config:1: " "{$backend \"backends\": {\"p\": {\"url\": \"redis://user:hunter2@h\"}}}"
assert_lacks "$(<err)" hunter2 "the message about a syntax error beside a password"
echo "{$backend}" >"$config"
for mode in 666 622 620 602; do
  chmod "$mode" "$config"
  refuses "others can write to it (mode 0$mode); run: chmod go-w $config"
done
chmod 600 "$config"
if ((EUID == 0)); then
  chown 65534 "$config"
  refuses "belongs to user 65534, who could change it"
fi

# What is no file, or too much of one.
rm "$config"
refuses 'no such file'
ln -s missing "$config"
refuses 'no such file'
rm "$config"
mkdir "$config"
refuses 'is not a regular file'
rmdir "$config"
mkfifo "$config"
refuses 'is not a regular file'
rm "$config"
head -c 2000000 /dev/zero | tr '\0' ' ' >"$config"
chmod 600 "$config"
refuses 'is longer than 1048576 bytes'
truncate -s 1T "$config" 2>/dev/null || truncate -s 2G "$config"
refuses 'is longer than 1048576 bytes'
ln -sf /dev/zero "$config"
refuses 'is not a regular file'
rm "$config"

# The usual places are looked at in the same way, and a missing file there is none.
mkdir -p "$HOME/.config/dlock" "$tmp/xdg/dlock"
echo '{"ttl": 0}' >"$HOME/.config/dlock/config.json"
chmod 600 "$HOME/.config/dlock/config.json"
got=0
"$DLOCK" run -k job -b "file://$locks" -- touch ran 2>err || got=$?
assert_equal 78 "$got" "exit status with a bad config file in the home directory"
assert_contains "$(<err)" "$HOME/.config/dlock/config.json:1: ttl: " "stderr with it"
echo "{$backend}" >"$tmp/xdg/dlock/config.json"
chmod 600 "$tmp/xdg/dlock/config.json"
expect_status 0 env XDG_CONFIG_HOME="$tmp/xdg" "$DLOCK" run -k job -- true
[[ ! -e ran ]] || fail "the command was run with a bad config file"
rm "$HOME/.config/dlock/config.json"

# What editors on other systems write: a byte order mark, and CRLF.
good $'\xef\xbb\xbf'"{$backend}"
good "{$backend,"$'\r' $'"ttl": "5s"}\r'
bad "$config:2: unknown key" "{$backend,"$'\r' $'"tll": "5s"}\r'

# Who wins: flag, environment, profile, top level.
mkdir -m 0700 flag environment profile top
# used WHERE ARGUMENTS...: the lock was taken in this directory, as the status file says.
used() {
  local where=$1
  shift
  "${dlock[@]}" --status-file status "$@" -- true
  python3 -c 'import json, sys; sys.exit(json.load(open("status"))["backend"] != sys.argv[1])' \
    "file://$tmp/$where" || fail "not taken in $where: $(<status) with $*"
}
cat >"$config" <<JSON
{"backend": "file://$tmp/top", "conflict_exit_code": 11,
 "backends": {"p": {"url": "file://$tmp/profile", "conflict_exit_code": 12}}}
JSON
used top
used profile -b p
DLOCK_BACKEND=p used profile
DLOCK_BACKEND=file://$tmp/environment used environment
DLOCK_BACKEND=file://$tmp/environment used flag -b "file://$tmp/flag"
DLOCK_BACKEND=file://$tmp/environment used profile -b p
DLOCK_BACKEND='' used top  # an empty variable is none
DLOCK_CONFIG=$tmp/missing used top
sed -i "s|file://$tmp/top|p|" "$config"
used profile

# The same for another setting: the exit status of a lock that is busy.
"${dlock[@]}" -- sh -c 'touch held; until test -e go; do sleep 0.02; done' &
holder=$!
wait_until 30 test -e held
sed -i "s|\"p\", |\"file://$tmp/profile\", |" "$config"
expect_status 11 "${dlock[@]}" -q -n -- true
expect_status 12 "${dlock[@]}" -q -n -b p -- true
DLOCK_CONFLICT_EXIT_CODE=13 expect_status 13 "${dlock[@]}" -q -n -b p -- true
DLOCK_CONFLICT_EXIT_CODE=13 expect_status 14 "${dlock[@]}" -q -n -b p -E 14 -- true
# And for a boolean: the environment's "no wait" gives way to a flag's wait.
DLOCK_NONBLOCK=1 expect_status 12 "${dlock[@]}" -q -b p -- true
DLOCK_NONBLOCK=1 "${dlock[@]}" -q -b p -w 60 -- touch waited &
waiter=$!
touch go
wait "$holder"
wait "$waiter" || fail "DLOCK_NONBLOCK=1 wins over --wait 60"
