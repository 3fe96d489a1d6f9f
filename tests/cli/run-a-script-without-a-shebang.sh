#!/usr/bin/env bash
# A script without #! is run by /bin/sh, and a directory of PATH that cannot be reached does not end the search: as
# execvp(3) does it, and with it flock, timeout, nice and env.
. "$(dirname "$0")/lib.sh"

need flock strace
cd "$tmp"
printf 'echo "ran by $0 with $*"; exit 3\n' >job
chmod +x job

# as_flock ARGUMENTS...: the command prints the same, and ends with the same status, by dlock as by flock(1).
as_flock() {
  local want=0 got=0
  flock "$tmp/by-flock" "$@" >want || want=$?
  "$DLOCK" run -q -k job -- "$@" >out 2>err || got=$?
  assert_equal "$want $(<want)" "$got $(<out)$(<err)" "status and output of $*"
}
as_flock "$tmp/job" a 'b c'
as_flock ./job
PATH=$tmp:$PATH as_flock job x
PATH=$PATH:: as_flock job y
: >empty
chmod +x empty
as_flock ./empty

# Without a /bin/sh the first error counts.
got=0
strace -f -qq -o trace -e trace=execve -P /bin/sh -e inject=execve:error=ENOENT "$DLOCK" run -k job -- "$tmp/job" 2>err || got=$?
assert_equal 126 "$got" "status without /bin/sh"
assert_contains "$(<err)" "$tmp/job: Exec format error"

# Network file systems that are gone.
mkdir gone there
cp job there/found
for error in ESTALE ENODEV ETIMEDOUT EACCES; do
  got=0
  PATH=$tmp/gone:$tmp/there:$PATH strace -f -qq -o trace -e trace=execve -P "$tmp/gone/found" \
    -e inject=execve:error="$error" "$DLOCK" run -k job -- found >out 2>err || got=$?
  assert_equal 3 "$got" "status where a directory of PATH gives $error ($(<err))"
done
got=0
PATH=$tmp/gone:$PATH strace -f -qq -o trace -e trace=execve -P "$tmp/gone/found" \
  -e inject=execve:error=ESTALE "$DLOCK" run -k job -- found 2>err || got=$?
assert_equal 126 "$got" "status where the only directory that may have it is gone"
assert_contains "$(<err)" "Stale file handle"
