#!/usr/bin/env bash
# What "dlock acquire --export" prints sets, in each shell that evaluates it, the variables that a command of
# "dlock run" finds, whatever is in the keys, and removes those that there are none of.  "dlock release" reads them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need dash bash zsh fish python3

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]} DLOCK_QUIET=1
# shellcheck disable=SC1003,SC2016  # as they stand here
strange=("it's" '"' '\' "\\'" '$HOME `id` $(id)' '*' '#' '!' '~' ' two  words ' '-n' ';exit 9' '%s\n' '{a,b}' '=ls' "''"
  '(id)' $'\u00e9\U1F512')

cat >check.py <<'PY'
import os, re, sys
status, slot, *keys = sys.argv[1:]
assert status == '0', status
variable = lambda name: os.environ.get('DLOCK_' + name)
tokens, fences = variable('TOKENS').split('\n'), variable('FENCES').split('\n')
assert variable('KEYS').split('\n') == keys, variable('KEYS')
assert len(keys) == len(tokens) == len(fences)
assert all(re.fullmatch('[0-9a-f]{32}(:[0-9]+)?', token) for token in tokens) and all(int(fence) > 0 for fence in fences)
assert [variable(name) for name in ('KEY', 'TOKEN', 'FENCE')] == [keys[0], tokens[0], fences[0]]
assert variable('SLOT') == (slot or None), variable('SLOT')
PY

# evaluates SLOT SHELL... CODE: the shell gets the keys, as arguments, and runs the code.
evaluates() {
  local slot=$1 got=0 code=${*: -1}
  shift
  export SLOT=$slot OPTION=--shared=no
  [[ -z $slot ]] || OPTION=--slots=3
  DLOCK_KEY=old DLOCK_SLOT=7 DLOCK_FENCES=old "${@:1:$#-1}" -c "$code" "${zeroth[@]}" "${keys[@]}" >out 2>&1 || got=$?
  assert_equal "0/" "$got/$(<out)" "what ${*:1:$#-1} makes of $slot ${keys[*]}"
  # Tokens of another shell would not release these.
  for key in "${keys[@]}"; do assert_free "$key"; done
}
keys_as_options='for key do set -- "$@" "--key=$key"; shift; done'
sh='set -e
eval "$('"$keys_as_options"'; "$DLOCK" acquire --ttl 1m "$OPTION" --export "$@")"
python3 check.py "$?" "$SLOT" "$@"
'"$keys_as_options"'
"$DLOCK" release "$@"'
fish='set -l options --key=$argv
eval ($DLOCK acquire --ttl 1m $OPTION --export=fish $options)
python3 check.py "$status" "$SLOT" $argv; and $DLOCK release $options'
for slot in '' 1; do
  for which in job all; do
    keys=(job)
    [[ $which == job ]] || keys=("${strange[@]}")
    for shell in dash 'bash --posix' bash zsh 'zsh -o RC_QUOTES'; do
      zeroth=(sh)
      # shellcheck disable=SC2086  # words
      evaluates "$slot" $shell "$sh"
    done
    zeroth=()
    evaluates "$slot" fish --no-config "$fish"
  done
done

# --export is --export=sh, and beats the JSON of the environment.  Without quotes around it, it is evaluated, too.
eval "$("$DLOCK" acquire --ttl 1m -k job --export)"
"$DLOCK" release -k job
# shellcheck disable=SC2046
eval $(DLOCK_JSON=1 "$DLOCK" acquire --ttl 1m -k job --export=sh)
"$DLOCK" release -k job
assert_free job
