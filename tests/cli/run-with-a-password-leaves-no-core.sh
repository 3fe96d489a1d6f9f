#!/usr/bin/env bash
# With a password in memory, be it used or not, neither process of dlock can dump core or be looked into by
# its user; the command can.  What /proc hides then must not matter: neither to a nested run nor to the end of
# the tree.
. "$(dirname "$0")/lib.sh"

# Root is not kept out by anything: as somebody else.
dlock=$tmp/dlock
cp "$TEST_DLOCK" "$dlock"
chmod 0755 "$tmp" "$dlock"
mkdir -m 0777 "$tmp/stores"
user=(env)
((EUID != 0)) || { need setpriv; user=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent); }
"${user[@]}" "$dlock" version >/dev/null || skip "$tmp is noexec"
uid=$("${user[@]}" id -u)

# /proc/PID of a process that cannot dump core belongs to root.
owners() { # URL [VARIABLE=VALUE...]: who owns dlock's two processes and the command
  # shellcheck disable=SC2016 # the shell below it has the variables
  "${user[@]}" "${@:2}" "$dlock" run -q --backend "$1" --key k -- sh -c '
    supervisor=$PPID
    launcher=$(sed "s/.*) . \([0-9]*\) .*/\1/" "/proc/$supervisor/stat")
    stat -c %u "/proc/$launcher/mem" "/proc/$supervisor/mem" "/proc/$$/mem" | paste -sd " "
    head -c 1 "/proc/$$/environ" >/dev/null || echo "the command hides its environment"'
}
store=memory://$tmp/stores/s
assert_equal "$uid $uid $uid" "$(owners "$store")" "without a password"
assert_equal "0 0 $uid" "$(owners "$store?password=secret")" "with a password"
assert_equal "0 0 $uid" "$(owners "memory://u:secret@$tmp/stores/s")" "with a password before the host"

# A password that is not used is in memory, too: in the environment, and in the config file.
for variable in DLOCK_BACKEND DLOCK_SERVERS; do
  assert_equal "0 0 $uid" "$(owners "$store" "$variable=redis://u:secret@h")" "with a password in $variable"
  assert_equal "$uid $uid $uid" "$(owners "$store" "$variable=redis://u@h")" "without one in $variable"
done
config() { # TEXT: a config file that the user can read and nobody else
  rm -f "$tmp/config.json"
  install -m 0600 -o "$uid" <(echo "$1") "$tmp/config.json"
}
config '{"backends": {"other": {"url": "redis://u:secret@h"}}}'
assert_equal "0 0 $uid" "$(owners "$store" DLOCK_CONFIG="$tmp/config.json")" "with a password in another profile"
config '{"backends": {"other": {"url": "redis://u@h"}}}'
assert_equal "$uid $uid $uid" "$(owners "$store" DLOCK_CONFIG="$tmp/config.json")" "without one in another profile"

# A crash: in place of the code that a process is to go on with there are zeros, which no processor can execute.
crash() { # PID
  local fields=(running)
  until ((${#fields[@]} > 2)); do read -ra fields <"/proc/$1/syscall"; done
  head -c 64 /dev/zero | dd of="/proc/$1/mem" bs=1 seek=$((fields[-1])) conv=notrunc status=none
  kill -USR1 "$1"  # to go on
}
cores() { # PARENTS [VARIABLE=VALUE...]: what is left by a crash of the process so far above the command
  # The backend keeps the lock of a process that crashed for a while: each has a key of its own.
  local parents=$1 pid
  shift
  rm -rf "$tmp/cores"
  mkdir -m 0777 "$tmp/cores"
  cd "$tmp/cores"
  # shellcheck disable=SC2016 # the shell below it has the variables
  (ulimit -c unlimited && exec "${user[@]}" "$@" "$dlock" run -q --backend "$store" --key "$EPOCHREALTIME" -- \
    sh -c 'echo $PPID >pid; exec sleep 1000') 2>/dev/null &
  wait_until 20 test -s pid
  pid=$(<pid)
  ((parents == 1)) || pid=$(sed "s/.*) . \([0-9]*\) .*/\1/" "/proc/$pid/stat")
  crash "$pid"
  wait $! || true
  wait_until 20 gone "$pid"
  find . -name 'core*'
}
# Where the kernel gives cores to a program, the owners above are all that can be seen.
if ((EUID == 0)) && [[ $(cores 1) ]]; then
  for parents in 1 2; do
    assert_contains "$(cores "$parents")" core "after a crash without a password"
    assert_equal "" "$(cores "$parents" DLOCK_BACKEND=redis://u:secret@h)" "core files after a crash with a password"
  done
fi

run() { "${user[@]}" "$dlock" run -q --backend "$store?password=secret" --key "$@"; }
assert_equal "in" "$(run a -- "$dlock" run -q --backend "$store?password=secret" --key b -- \
  "$dlock" run -q --backend "$store?password=secret" --key a -n -- echo in)" "a nested run with another key between"

# A label of many URLs, which may be another person's text, does not keep dlock busy: looking for passwords in all of
# them took 20 s.
label=$(printf 'a://%.0s' {1..32000})
got=0
DLOCK_LABEL=$label timeout 10 "$dlock" run -q --backend "$store" --key a -- true 2>/dev/null || got=$?
assert_equal 64 "$got" "status with a very long label"

# In a /proc that hides whatever its reader may not look into, as systemd's ProtectProc makes it, a
# job with another dlock in it is ended as ever.
hidden() { unshare --mount --pid --fork sh -c 'mount -t proc -o hidepid=2 proc /proc && "$@"' sh "$@"; }
if ((EUID == 0)) && command -v unshare >/dev/null && hidden true 2>/dev/null; then
  expect_status 124 hidden "${user[@]}" timeout -s KILL 20 "$dlock" run -q --backend "$store?password=secret" \
    --key h --max-hold 0.5s --kill-after 0.5s -- "$dlock" run -q --backend "$store?password=secret" --key i -- \
    sh -c 'trap "" TERM; setsid sleep 1000 & sleep 1000; sleep 1000'
fi
