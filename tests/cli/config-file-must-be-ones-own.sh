#!/usr/bin/env bash
# A config file that others could have written, or that is no file, is refused with status 78 and one line that names
# it; a good one comes behind the environment and the flags.  Bad text is in refused-command-lines.txt.
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
refuses 'is a link that leads nowhere'
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
# And for rivals: the environment's "no wait" gives way to a flag's wait.
DLOCK_WAIT=0 expect_status 12 "${dlock[@]}" -q -b p -- true
DLOCK_WAIT=0 "${dlock[@]}" -q -b p -w 60 -- touch waited &
waiter=$!
touch go
wait "$holder"
wait "$waiter" || fail "DLOCK_WAIT=0 wins over --wait 60"
