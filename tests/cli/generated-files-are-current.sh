#!/usr/bin/env bash
# The committed man page and completions are what `dlock generate` writes, and man(1) likes them.
. "$(dirname "$0")/lib.sh"

check() {
  "$DLOCK" generate "$1" >"$tmp/out"
  diff -u "$TEST_SOURCE/$2" "$tmp/out" ||
    fail "$2 is not what \"dlock generate $1\" writes; run: cmake --build BUILD -t generate"
}

check bash completions/dlock.bash
check fish completions/dlock.fish
check man man/dlock.1
check zsh completions/_dlock

if command -v man >/dev/null && command -v groff >/dev/null; then
  # The width is fixed, or the backends' table would be judged by the terminal of the day.
  MANWIDTH=80 man --warnings -E UTF-8 -l "$TEST_SOURCE/man/dlock.1" >"$tmp/page" 2>"$tmp/warnings" ||
    fail "man cannot show man/dlock.1: $(cat "$tmp/warnings")"
  [[ ! -s $tmp/warnings ]] || fail "man warns about man/dlock.1: $(cat "$tmp/warnings")"
  for section in NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS 'CHOOSING A BACKEND' BACKENDS \
    'CONFIG FILE' ENVIRONMENT 'EXIT STATUS' 'STATUS FILE' 'SIGNALS AND TERMINAL' 'NESTED RUNS' CAVEATS \
    EXAMPLES 'SEE ALSO'; do
    grep -qx "$section" "$tmp/page" || fail "the man page has no section $section"
  done
fi
