#!/usr/bin/env bash
# With a password in the URL neither process of dlock can dump core or be looked into by its user;
# the command can.  What /proc hides then must not matter: neither to a nested run nor to the end of
# the tree.
. "$(dirname "$0")/lib.sh"

# Root is not kept out by anything: as somebody else.
dlock=$tmp/dlock
cp "$DLOCK_TEST" "$dlock"
chmod 0755 "$tmp" "$dlock"
mkdir -m 0777 "$tmp/stores"
user=(env)
((EUID != 0)) || { need setpriv; user=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent); }
"${user[@]}" "$dlock" version >/dev/null || skip "$tmp is noexec"
uid=$("${user[@]}" id -u)

# /proc/PID of a process that cannot dump core belongs to root.
owners() { # URL: who owns dlock's two processes and the command
  # shellcheck disable=SC2016 # the shell below it has the variables
  "${user[@]}" "$dlock" run -q --backend "$1" --key k -- sh -c '
    supervisor=$PPID
    front=$(sed "s/.*) . \([0-9]*\) .*/\1/" "/proc/$supervisor/stat")
    stat -c %u "/proc/$front/mem" "/proc/$supervisor/mem" "/proc/$$/mem" | paste -sd " "
    head -c 1 "/proc/$$/environ" >/dev/null || echo "the command hides its environment"'
}
store=memory://$tmp/stores/s
assert_equal "$uid $uid $uid" "$(owners "$store")" "without a password"
assert_equal "0 0 $uid" "$(owners "$store?password=secret")" "with a password"
assert_equal "0 0 $uid" "$(owners "memory://u:secret@$tmp/stores/s")" "with a password before the host"

run() { "${user[@]}" "$dlock" run -q --backend "$store?password=secret" --key "$@"; }
assert_equal "in" "$(run a -- "$dlock" run -q --backend "$store?password=secret" --key b -- \
  "$dlock" run -q --backend "$store?password=secret" --key a -n -- echo in)" "a nested run with another key between"

# In a /proc that hides whatever its reader may not look into, as systemd's ProtectProc makes it, a
# job with another dlock in it is ended as ever.
hidden() { unshare --mount --pid --fork sh -c 'mount -t proc -o hidepid=2 proc /proc && "$@"' sh "$@"; }
if ((EUID == 0)) && command -v unshare >/dev/null && hidden true 2>/dev/null; then
  expect_status 124 hidden "${user[@]}" timeout -s KILL 20 "$dlock" run -q --backend "$store?password=secret" \
    --key h --max-hold 0.5s --kill-after 0.5s -- "$dlock" run -q --backend "$store?password=secret" --key i -- \
    sh -c 'trap "" TERM; setsid sleep 1000 & sleep 1000; sleep 1000'
fi
