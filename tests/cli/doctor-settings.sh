#!/usr/bin/env bash
# dlock doctor says which settings are in force and where each comes from, and what is wrong with them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/doctor.sh"
need python3
cd "$tmp"
unset DLOCK_BACKEND
export XDG_CONFIG_HOME=$tmp/config
mkdir -p config/dlock other
file=$tmp/config/dlock/config.json

# in_force NAME VALUE SOURCE: the output says so.
in_force() { grep -qxE -- "$1 +$2  \($3\)" out || fail "no $1 $2 ($3) in $(<out)"; }

# Nothing is said: the first line is for a bug report.
doctor 0 --read-only -b "file://$locks"
assert_contains "$(head -n 1 out)" "$("$DLOCK" version | head -n 1) (file"
assert_contains "$(head -n 1 out)" "$(uname -sr)"
in_force backend "file://$locks" --backend
in_force ttl 30s default
in_force 'config file' "$file" 'not there'
finds note file-scope 'on this machine only'
finds_no try-acquire
finds ok file-directory 'mode 0700'

# Each from another place.
cat >"$file" <<END
{"ttl": "20s",
 "backends": {"prod": {"url": "file://$locks"},
              "down": {"url": "redis://127.0.0.1:1", "connect_timeout": "2s"}}}
END
DLOCK_TTL=40s doctor 0 -b prod
in_force backend "file://$locks" "--backend, profile prod, $file:2"
in_force ttl 40s DLOCK_TTL
in_force 'config file' "$file" read
finds ok try-release
DLOCK_BACKEND=down doctor 69
in_force backend redis://127.0.0.1:1 "DLOCK_BACKEND, profile down, $file:3"
in_force ttl 20s "$file:1: ttl"
in_force 'connect timeout' 2s "$file:3: connect_timeout"

# All of them, one of which is down.
doctor 69 --all
finds ok try-release
finds FAIL redis-connect
expect_status 64 "$DLOCK" doctor --all -b prod 2>err
assert_equal 'dlock: --all: cannot be combined with --backend' "$(<err)"
expect_status 78 "$DLOCK" doctor --all --config '' 2>err

# As JSON: one object, or a list of them.
doctor 0 -b prod --json
python3 - out <<'END'
import json, sys
found = json.load(open(sys.argv[1]))
assert list(found) == ["backend", "settings", "findings"], found
assert {"name": "ttl", "value": "20s"}.items() <= found["settings"][1].items(), found
assert all(list(one) == ["name", "value", "source"] for one in found["settings"])
assert all(list(one) == ["name", "level", "server", "seen", "why", "fix"] for one in found["findings"])
levels = {one["name"]: one["level"] for one in found["findings"]}
assert levels["file-scope"] == "note" and levels["try-acquire"] == "ok", levels
END
doctor 69 --all --json
python3 -c 'import json; assert [one["backend"] for one in json.load(open("out"))][1] == "redis://127.0.0.1:1"'

# -q leaves out what is well.
doctor 69 -q -b down
assert_equal "FAIL  redis-connect           redis 127.0.0.1:1: connection refused" "$(head -n 1 out)"

# An unknown variable, an empty one, a password on the command line.
DLOCK_WIAT=10 doctor 0 -b prod
finds warn setting 'the variable DLOCK_WIAT is not read; did you mean "DLOCK_WAIT"?'
DLOCK_BACKEND='' doctor 0
finds warn setting 'the variable DLOCK_BACKEND is empty'
doctor 69 -b redis://app:sesame@127.0.0.1:1
finds warn setting 'anybody on this machine can read the password in --backend'
assert_lacks "$(<out)" sesame "the output"

# The user's file hides what that of the machine says.
if ((EUID == 0)) && unshare --mount true 2>/dev/null; then
  cat >other/config.json <<END
{"ttl": "50s", "wait": "1h", "backends": {"prod": {"url": "redis://127.0.0.1:1"}, "test": {"url": "redis://127.0.0.1:2"}}}
END
  mkdir -p etc
  # shellcheck disable=SC2016  # for the shell that is started
  unshare --mount bash -c 'mount -t tmpfs none /etc && mkdir /etc/dlock && cp other/config.json /etc/dlock/ &&
    exec "$DLOCK" doctor -b prod' >out
  in_force 'config file' /etc/dlock/config.json read
  finds warn config-hidden "$file hides of /etc/dlock/config.json: ttl, profile prod"
  advises "remove these keys from $file"
fi

# A file, or a name, that no command takes: other commands say so, and name doctor.
doctor 64 -b nowhere
finds FAIL setting '"nowhere" is not a backend'
echo '{"wiat": 3}' >"$file"
doctor 78
finds FAIL setting "$file:1: unknown key \"wiat\"; did you mean \"wait\"?"
expect_status 78 "$DLOCK" run -k x -- true 2>err
assert_equal "dlock: $file:1: unknown key \"wiat\"; did you mean \"wait\"?; see: dlock doctor" "$(<err)"
rm "$file"
expect_status 69 "$DLOCK" list -b redis://127.0.0.1:1 2>err
assert_equal 'dlock: redis 127.0.0.1:1: connection refused; see: dlock doctor -b redis://127.0.0.1:1' "$(<err)"
expect_status 69 "$DLOCK" run -k x -b redis://127.0.0.1:1 --connect-timeout 1ms -- true 2>err
assert_contains "$(<err)" '; see: dlock doctor -b redis://127.0.0.1:1'
