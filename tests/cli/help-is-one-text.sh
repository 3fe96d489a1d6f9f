#!/usr/bin/env bash
# -h, --help and "dlock help COMMAND" print one text: examples first, options by their groups, 75 lines at most.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

"$DLOCK" help >overview
mapfile -t commands < <(sed -n 's/^  \([a-z-]*\)  *[a-z].*/\1/p' overview | grep -vx dlock)
((${#commands[@]} == 14)) || fail "the overview names ${#commands[@]} commands: ${commands[*]}"
for command in "${commands[@]}"; do
  "$DLOCK" help "$command" >full
  "$DLOCK" "$command" -h >short
  "$DLOCK" "$command" --help >long
  cmp full short || fail "$command -h is not dlock help $command"
  cmp full long || fail "$command --help is not dlock help $command"
  (($(wc -l <full) <= 75)) || fail "help $command is longer than a screen"
done

# What comes first, what is left to the manual, and the statuses.
"$DLOCK" help run >out
assert_equal "Examples Lock Command Result Backend COMMAND Exit" \
  "$(grep -E '^(Examples|Lock|Command|Result|Backend|COMMAND|Exit)' out | awk '{ print $1 }' | xargs)" "the parts of help run"
grep -q '^  Also --server, --prefix: see man dlock' out || fail "help run does not name what the manual has"
grep -q '^  75  not acquired' out || fail "help run has no exit statuses"

# Each example of a command is a command line that this dlock accepts.
grep -hE '^  dlock ' overview <(for command in "${commands[@]}"; do "$DLOCK" help "$command"; done) >examples
(($(wc -l <examples) > 20)) || fail "there are no examples"
while read -r _ line; do
  line=${line%%   *}   # what is said of it
  # shellcheck disable=SC2016
  DLOCK_CONFIG='' bash -c 'set -- '"${line%%[|>]*}"' ; "$DLOCK" "$@" --help >/dev/null' 2>err ||
    fail "dlock $line: $(<err)"
done < <(sed 's/ -- .*//' examples)
