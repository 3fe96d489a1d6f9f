# shellcheck shell=bash
# For the scripts that look at what dlock doctor finds.  After lib.sh:
#   . "$(dirname "$0")/doctor.sh"
: "${tmp:?lib.sh comes first}"

# doctor STATUS ARGUMENTS...: dlock doctor ARGUMENTS exits with STATUS; leaves its output in $tmp/out.
doctor() {
  local want=$1 got=0
  shift
  "$DLOCK" doctor "$@" >"$tmp/out" 2>"$tmp/err" || got=$?
  ((got == want)) || fail "expected status $want, got $got: dlock doctor $*: $(cat "$tmp/out" "$tmp/err")"
  assert_equal "" "$(<"$tmp/err")" "stderr of dlock doctor $*"
}

# finds LEVEL NAME [TEXT]: the output has a finding of this level and name, whose first line has this text.
finds() {
  grep -E "^$1 +$2 " "$tmp/out" | grep -qF -- "${3-}" || fail "no $1 $2 ${3-} in $(<"$tmp/out")"
}

# finds_no NAME: the output has no finding of this name.
finds_no() { ! grep -E "^[a-zA-Z]+ +$1 " "$tmp/out" || fail "there is $1 in $(<"$tmp/out")"; }

# advises LINE: a line of the output is this, after the spaces.
advises() { sed 's/^ *//' "$tmp/out" | grep -qxF -- "$1" || fail "no line $1 in $(<"$tmp/out")"; }
