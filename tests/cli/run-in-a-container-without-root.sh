#!/usr/bin/env bash
# In a container that a user has started without root, what comes from the host, as /tmp and /dev do with toolbox(1) and
# distrobox(1), belongs to a user without a number.  The default lock directory and /dev/stdout work there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
need unshare

as_alice=(setpriv --reuid "${uid[alice]}" --regid "${uid[alice]}" --clear-groups env -u DLOCK_BACKEND HOME=/nonexistent)
container=("${as_alice[@]}" unshare -U --map-current-user --keep-caps -m)
"${container[@]}" true 2>err || skip "no user namespaces to be had: $(<err)"

install -d -m 755 -o "${uid[alice]}" "$tmp/root"
cat >enter.sh <<'SH'
set -e
cd "$1"
mkdir -p usr tmp dev proc
for name in bin lib lib64 sbin; do
  if [ -L /$name ]; then ln -sfn "$(readlink /$name)" $name; fi
done
for name in usr tmp dev; do mount --rbind /$name $name; done
mount --rbind /proc proc
cp "$2" dlock
shift 2
exec chroot . /dlock run -q -n -k job "$@"
SH
enter=(sh enter.sh "$tmp/root" "$tmp/dlock")
"${container[@]}" "${enter[@]}" -b file:///absent -- true >out 2>err || true
[[ $(<err) == dlock:* ]] || skip "no chroot in a user namespace: $(<err)"

# goes PREFIX...: dlock runs there.
goes() {
  "$@" -- echo ran >out 2>err || fail "status $? ($(<err))"
  assert_equal ran "$(<out)" "output of the command"
  "$@" --status-file /dev/stdout -- true >out 2>err || fail "with /dev/stdout: status $? ($(<err))"
  assert_contains "$(<out)" '"outcome":"completed"'
}
goes "${container[@]}" "${enter[@]}"
echo '{"wait": "5s"}' >"$tmp/root/config.json"
DLOCK_CONFIG=/config.json goes "${container[@]}" "${enter[@]}"
rm -rf "/tmp/dlock-${uid[alice]}"
