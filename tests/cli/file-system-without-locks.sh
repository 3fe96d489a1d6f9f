#!/usr/bin/env bash
# Where flock(2) is refused (Lustre without -o flock, NFS without lockd, a sandbox), the error says so at once, runs
# nothing and leaves nothing.
. "$(dirname "$0")/lib.sh"

need strace
cd "$tmp"

# refused ERROR TEXT COMMAND...: with this error of flock(2), dlock ends with 69 or 77 and a line that has the text.
refused() {
  local error=$1 text=$2 got=0
  shift 2
  timeout 30 strace -f -qq -o trace -e trace=flock -e inject=flock:error="$error" "$DLOCK" "$@" >out 2>err || got=$?
  [[ $got == 69 || $got == 77 ]] || fail "$error: status $got of dlock $* ($(<err))"
  assert_contains "$(<err)" "cannot lock $locks/job" "$error: stderr of dlock $*"
  assert_contains "$(<err)" "$text" "$error: stderr of dlock $*"
  assert_equal 1 "$(wc -l <err)" "$error: lines of stderr of dlock $*"
  [[ ! -e ran ]] || fail "$error: the command was run"
  assert_equal "" "$(find "$locks" -path '*~w/*')" "$error: registrations that are left"
}
hint='the file system there has no locks: name a directory on another one, as in --backend file:///DIR'
for how in '' -n '-w 2' '--shared' '--slots 2'; do
  # shellcheck disable=SC2086  # some are two words
  refused ENOSYS "Function not implemented; $hint" run $how -k job -- touch ran
done
refused ENOLCK "No locks available; $hint" run -w 2 -k job -- touch ran
refused EOPNOTSUPP "Operation not supported; $hint" run -w 2 -k job -- touch ran
refused EOPNOTSUPP "Operation not supported; $hint" acquire -k job --while "$$"
refused EIO "Input/output error" run -w 2 -k job -- touch ran
refused ESTALE "Stale file handle" run -w 2 -k job -- touch ran
refused EPERM "Operation not permitted" run -w 2 -k job -- touch ran
assert_lacks "$(<err)" "has no locks" "stderr with EPERM"

# The registration was locked, the lock cannot be.
for error in ENOLCK EIO; do
  timeout 30 strace -f -qq -o trace -e trace=flock -e inject=flock:error="$error":when=2+ \
    "$DLOCK" run -k job -- touch ran 2>err && fail "$error at the second lock: the command was run"
  assert_contains "$(<err)" "cannot lock $locks/job" "$error at the second lock"
done
expect_status 0 "$DLOCK" run -q -n -k job -- true

# A force-release tells the holder, and cannot see whether it has let go.
hold -q
expect_status 69 timeout 30 strace -f -qq -o trace -e trace=flock -e inject=flock:error=ENOLCK "$DLOCK" force-release -y job 2>err
assert_contains "$(<err)" "was told to let go, but whether it has cannot be seen: cannot lock $locks/job~" "stderr of force-release"
assert_contains "$(<err)" "No locks available; $hint" "stderr of force-release"
expect_status 79 wait "$holder"
