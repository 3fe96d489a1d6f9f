#!/usr/bin/env bash
# Every exit status of the table in src/engine/exit_status.hpp comes out where the table says.  Not
# here: 79 and 70, which need a backend that fails.
. "$(dirname "$0")/lib.sh"

mkdir "$tmp/bin"
printf 'no program\n' >"$tmp/bin/not-executable"
ln -s "$DLOCK" "$tmp/bin/dlock"
export PATH=$tmp/bin:$PATH

# row STATUS DLOCK-RUN-ARGUMENTS...: for this row, dlock run exits with STATUS.
declare -A provoked
dlock=(dlock)
row() {
  local want=$1 got=0
  shift
  "${dlock[@]}" run "$@" </dev/null >"$tmp/out" 2>"$tmp/err" || got=$?
  ((got == want)) || fail "expected status $want, got $got: dlock run $* ($(<"$tmp/err"))"
  [[ ! -s $tmp/out ]] || fail "dlock run $* wrote on stdout: $(<"$tmp/out")"
  provoked[$want]=1
}

# The command's, and 128+N.
row 0 --key job -- true
row 42 --key job -- sh -c 'exit 42'
# shellcheck disable=SC2016  # $$ is the command's
row 137 --key job -- sh -c 'kill -KILL $$'
provoked["the command's"]=1 provoked[128+N]=1

# Busy.
dlock run --key busy -- sh -c "touch $tmp/held; exec sleep 300" &
holder=$!
wait_until 30 test -e "$tmp/held"
row 75 --key busy --nonblock -- true
row 75 --key busy --wait 0 -- true
row 75 --key busy --wait 0.1 -- true
row 0 --key busy -n -E 0 -- false
row 255 --key busy -n -E 255 -- true
row 7 --key busy -n --conflict-exit-code=7 -- true
row 64 --key busy -n -E 256 -- true
row 64 --key busy -n -E x -- true
row 64 --key busy -n -E -1 -- true
provoked["75 (or -E N)"]=1
row 64 --key busy -n -E '' -- true
# -E is for a busy lock only.
row 69 --key job -E 9 --backend "file://$tmp/missing" -- true
kill -TERM "$holder"
got=0
wait "$holder" || got=$?
((got == 143)) || fail "the holder was ended by SIGTERM and exited with $got, not 143"

# The rest.
row 124 --key job --max-hold 0.1 -- sleep 300
row 69 --key job --backend "file://$tmp/missing" -- true
row 64 --key job --no-such-flag -- true
row 64 --key job
row 126 --key job -- "$tmp/bin/not-executable"
row 126 --key job -- not-executable
row 126 --key job -- "$tmp"
row 127 --key job -- no-such-command-anywhere
row 127 --key job -- "$tmp/bin/missing"
row 127 --key job -- "$tmp/bin/dlock/x"
row 127 --key job -- ''
echo '{"ttl": }' >"$tmp/config.json"
row 78 --key job --config "$tmp/config.json" -- true

# Denied: a lock directory of somebody else, or that is not ours to write to.
if ((EUID == 0)); then
  mkdir -m 0700 "$tmp/foreign"
  chown 65534 "$tmp/foreign"
  row 77 --key job --backend "file://$tmp/foreign" -- true
  cp -- "$DLOCK" "$tmp/dlock"
  chmod 711 "$tmp"
  dlock=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$tmp/dlock")
  if "${dlock[@]}" version >/dev/null 2>&1; then  # not where $tmp is noexec
    mkdir -m 0755 "$tmp/read-only"
    row 77 --key job --backend "file://$tmp/read-only" -- true
  fi
  dlock=(dlock)
else
  row 77 --key job --backend file:///etc -- true
fi

# None of these left the lock behind, and no row of the table was forgotten.
row 0 --nonblock --key job -- true
row 0 --nonblock --key busy -- true
rows=$(sed -n '/^\.Sh EXIT STATUS/,/^\.El/s/^\.It Sy //p' "$TEST_SOURCE/man/dlock.1" | tr -d '"' | sed 's/\\(aq/'"'"'/')
while read -r status; do
  [[ $status == 79 || $status == 70 || -v provoked[$status] ]] ||
    fail "the table has a row $status that this test does not provoke"
done <<<"$rows"
((${#rows} > 30)) || fail "the table in dlock(1) was not found"
