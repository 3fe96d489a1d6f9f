#!/usr/bin/env bash
# The user's config file counts before that of the machine, key by key; a profile counts as a whole, and servers, prefix
# and password stand in profiles only.  This script has an /etc/dlock of its own.
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
echo "{\"backend\": \"file://$locks\", \"verbose\": 1, \"label\": \"theirs\"}" >"$machine"
echo "{\"backend\": \"file://$tmp/mine\", \"quiet\": true, \"wait\": 0}" >"$user"
expect_status 0 "$DLOCK" run -k job -- "$DLOCK" list -o label >out 2>err
assert_equal "" "$(<err)" "stderr with quiet"
assert_equal "LABEL theirs" "$(xargs <out)" "label of the machine's file"
[[ -e mine/job ]] || fail "the lock is elsewhere"

# A profile counts as a whole.
cat >"$machine" <<END
{"backends": {"prod": {"url": "redis://app@127.0.0.1:1", "password_file": "$tmp/none"},
              "test": {"url": "redis://127.0.0.1:2"}}}
END
echo '{"backends": {"prod": {"url": "redis://127.0.0.1:3"}}}' >"$user"
where "redis 127.0.0.1:3" -b prod
where "redis 127.0.0.1:2" -b test
expect_status 64 "$DLOCK" list -b none 2>err
assert_contains "$(<err)" '"none" is not a backend, and not a profile; profiles: prod, test' "stderr with a profile that is in neither"

# Servers, prefix and password belong to one backend, so they stand in its profile, and only there.
echo '{}' >"$machine"
for what in '"servers": ["127.0.0.1:6"]' '"password_file": "/none"' '"prefix": "mine:"'; do
  echo "{\"backend\": \"redis\", $what}" >"$user"
  expect_status 78 "$DLOCK" list 2>err
  assert_contains "$(<err)" "; it belongs to one backend: write it into a profile, beside its \"url\"" "stderr"
done
echo theirs >password
echo "{\"backends\": {\"p\": {\"url\": \"redis://app@\", \"servers\": [\"127.0.0.1:6\"], \"prefix\": \"p:\",
  \"password_file\": \"$tmp/password\"}, \"q\": {\"url\": \"redis://\"}}}" >"$user"
where "redis 127.0.0.1:6" -b p
expect_status 64 "$DLOCK" list -b p -S 127.0.0.1:8 2>err
assert_contains "$(<err)" '--server: the profile "p" names its servers already' "stderr"
DLOCK_SERVERS=127.0.0.1:8 expect_status 64 "$DLOCK" list -b p 2>err
DLOCK_SERVERS=127.0.0.1:8 where "redis 127.0.0.1:8: connection refused; backend from DLOCK_SERVERS" -b q

# A URL that names its servers, and a variable that names others.
rm "$machine"
echo '{"backend": "redis://127.0.0.1:3"}' >"$user"
DLOCK_SERVERS=127.0.0.1:8 expect_status 64 "$DLOCK" list 2>err
assert_contains "$(<err)" "DLOCK_SERVERS: the URL of $user:1: backend names its servers already" "stderr"
echo '{"backend": "p", "backends": {"p": {"url": "redis://127.0.0.1:3"}}}' >"$user"
DLOCK_SERVERS=127.0.0.1:8 expect_status 64 "$DLOCK" list 2>err
DLOCK_SERVERS=127.0.0.1:8 where "redis 127.0.0.1:3" -b p
DLOCK_SERVERS=127.0.0.1:8 where "redis /none" -b redis+unix:///none

# Either that is bad is refused, by its place.
echo '{' >"$machine"
expect_status 78 "$DLOCK" list -b "file://$locks" 2>err
assert_contains "$(<err)" "$machine:" "stderr with a bad file of the machine"
expect_status 0 "$DLOCK" list -q -b "file://$locks" --config "$user"
rm "$machine" "$user"
expect_status 64 "$DLOCK" list -b prod 2>err
assert_contains "$(<err)" "\"prod\" is not a backend, and not a profile: no config file was found (looked for $user, $machine)" "stderr"

# That of the machine out of reach is named, unless the user's says all that counts.
((EUID == 0)) && type setpriv >/dev/null 2>&1 && [[ $tmp != /tmp/* ]] || exit 0
cp "$DLOCK" dlock
DLOCK=$tmp/dlock  # the one under test may be below /tmp
chmod 755 "$tmp"
chmod 700 /etc/dlock
mount -t tmpfs -o mode=1777 none /tmp
nobody() { HOME=$tmp/nobody setpriv --reuid 65534 --regid 65534 --clear-groups "$DLOCK" "$@"; }
install -d -m 700 -o 65534 nobody nobody/.config nobody/.config/dlock nobody/locks
expect_status 0 nobody list -q 2>err
assert_contains "$(<err)" "$machine cannot be reached, since a directory above it may not be searched; so the locks are" "stderr"
assert_lacks "$(<err)" "HOME" "stderr"
install -m 600 -o 65534 <(echo "{\"backend\": \"file://$tmp/nobody/locks\"}") nobody/.config/dlock/config.json
expect_status 0 nobody list -q 2>err
assert_equal "" "$(<err)" "stderr with a backend of the user's"
