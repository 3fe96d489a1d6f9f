#!/usr/bin/env bash
# A file with a password that belongs to root may be read by its group, as those of systemd (LoadCredential=) and
# Kubernetes (fsGroup) are, but by nobody else; one of the user by the user alone.
# This script has mounts of its own.
if [[ -z ${own_mounts-} ]] && unshare -m true 2>/dev/null; then own_mounts=1 exec unshare -m bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
"$DLOCK" backends --json | grep -qzP '"redis"[^}]*"built_in": ?true' || skip "no redis backend"

# given MODE OWNER STATUS: how a run of alice ends, with such a password file for a server that is not there.
given() {
  local got=0
  echo secret >"$tmp/password"
  chown "$2" "$tmp/password"
  chmod "$1" "$tmp/password"
  "$alice" run -q -n -k job -b redis://127.0.0.1:1 --password-file "$tmp/password" -- true 2>err || got=$?
  assert_equal "$3" "$got" "status with a password file of $2 and mode $1 ($(<err))"
}
given 0640 "0:$team" 69
given 0440 "0:$team" 69
given 0644 "0:$team" 78
assert_contains "$(<err)" "others can read it (mode 0644); run: chmod o-rwx $tmp/password"
given 0640 "${uid[alice]}:$team" 78
assert_contains "$(<err)" "others can read it (mode 0640); run: chmod go-rwx $tmp/password"
given 0600 "${uid[alice]}:$team" 69

# A volume that cannot be written to, as of a Kubernetes Secret: chmod would not help there.
[[ -n ${own_mounts-} && -d /mnt ]] || exit 0
mount -t tmpfs -o mode=755 none /mnt
echo secret >/mnt/password
chmod 644 /mnt/password
for user in alice root; do
  mount -o remount,ro /mnt
  expect_status 78 "${!user}" run -q -n -k job -b redis://127.0.0.1:1 --password-file /mnt/password -- true 2>err
  assert_contains "$(<err)" "its volume is read-only: give it mode 0440 where it is from (Kubernetes: defaultMode)" "$user"
  assert_lacks "$(<err)" chmod "$user"
  mount -o remount,rw /mnt
done
chmod 440 /mnt/password
mount -o remount,ro /mnt
expect_status 69 "$root" run -q -n -k job -b redis://127.0.0.1:1 --password-file /mnt/password -- true 2>err
# Of a group that root is not in; and where root's process has another group.
mount -o remount,rw /mnt
chown "0:$team" /mnt/password
mount -o remount,ro /mnt
expect_status 78 "$root" run -q -n -k job -b redis://127.0.0.1:1 --password-file /mnt/password -- true 2>err
assert_contains "$(<err)" "give it mode 0400 where it is from" "stderr with a file of a group"
mount -o remount,rw /mnt
chown 0:0 /mnt/password
mount -o remount,ro /mnt
expect_status 69 setpriv --regid "$team" --clear-groups "$tmp/dlock" run -q -n -k job -b redis://127.0.0.1:1 \
  --password-file /mnt/password -- true 2>err
