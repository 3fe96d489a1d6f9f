#!/usr/bin/env bash
# The user's config file counts before that of the machine, key by key; a profile counts as a whole, and the password in
# the machine's file is not for a server that the user's names.  This script has an /etc/dlock of its own.
if [[ -z ${own_mounts-} ]] && unshare -m true 2>/dev/null; then own_mounts=1 exec unshare -m bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"
[[ -n ${own_mounts-} ]] || skip "may not have mounts of its own"
cd "$tmp"
unset DLOCK_BACKEND
mkdir -p etc "$HOME/.config/dlock"
cp -r /etc/. etc 2>/dev/null || true
rm -rf etc/dlock
mkdir etc/dlock
mount --bind etc /etc
machine=/etc/dlock/config.json
user=$HOME/.config/dlock/config.json
umask 077

# where WANT ARGUMENTS...: where dlock list looks.
where() {
  local want=$1
  shift
  "$DLOCK" list -v --connect-timeout 0.2 "$@" >out 2>err || true
  assert_contains "$(<err)" "$want" "stderr of dlock list $*"
}

# What only one of them says counts.
echo "{\"backend\": \"file://$locks\"}" >"$machine"
where "no locks in file://$locks"
echo '{"verbose": 1, "label": "mine"}' >"$user"
where "no locks in file://$locks"
hold --ttl 30s
"$DLOCK" list -o label >out
assert_contains "$(<out)" mine "label of the user's file"
release

# Of what both say, that of the user counts, also where only one of two rivals can be.
mkdir -m 700 mine
echo "{\"backend\": \"file://$locks\", \"verbose\": 1, \"label\": \"theirs\", \"wait\": \"x\"}" >"$machine"
echo "{\"backend\": \"file://$tmp/mine\", \"quiet\": true, \"wait\": 0}" >"$user"
expect_status 0 "$DLOCK" run -k job -- "$DLOCK" list -o label >out 2>err
assert_equal "" "$(<err)" "stderr with quiet"
assert_equal "LABEL theirs" "$(xargs <out)" "label of the machine's file"
[[ -e mine/job ]] || fail "the lock is elsewhere"
expect_status 78 "$DLOCK" list --config "$machine" 2>err

# A profile counts as a whole.
cat >"$machine" <<END
{"backends": {"prod": {"url": "redis://app@127.0.0.1:1", "password_file": "$tmp/none"},
              "test": {"url": "redis://127.0.0.1:2"}}}
END
echo '{"backends": {"prod": {"url": "redis://127.0.0.1:3"}}}' >"$user"
where "redis 127.0.0.1:3" -b prod
where "redis 127.0.0.1:2" -b test
expect_status 64 "$DLOCK" list -b none 2>err
assert_contains "$(<err)" "profiles: prod, test" "stderr with a profile that is in neither"

# The password of the machine is for its own servers.
echo theirs >theirs
echo "{\"password_file\": \"$tmp/none\", \"backends\": {\"test\": {\"url\": \"redis://127.0.0.1:2\"}}}" >"$machine"
where "$tmp/none: No such file" -b test
where "redis 127.0.0.1:3" -b prod
echo '{"backend": "redis://127.0.0.1:4"}' >"$user"
where "redis 127.0.0.1:4"
where "$tmp/none: No such file" -b redis://127.0.0.1:5
echo "{\"password_file\": \"$tmp/theirs\"}" >"$user"
where "redis 127.0.0.1:2" -b test
echo "{\"backend\": \"redis\", \"password_file\": \"$tmp/none\"}" >"$machine"
echo '{"servers": ["127.0.0.1:6"]}' >"$user"
where "redis 127.0.0.1:6"

# Either that is bad is refused, by its place.
echo '{' >"$machine"
expect_status 78 "$DLOCK" list -b "file://$locks" 2>err
assert_contains "$(<err)" "$machine:" "stderr with a bad file of the machine"
expect_status 0 "$DLOCK" list -q -b "file://$locks" --config "$user"
