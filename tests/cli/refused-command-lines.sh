#!/usr/bin/env bash
# What cannot be done as asked is refused before anything is touched, in one line on stderr that says what is wrong
# and shows no password: each row of refused-command-lines.txt.
. "$(dirname "$0")/lib.sh"

table=$(dirname "$(realpath "$0")")/refused-command-lines.txt
cd "$tmp"
umask 077
file_backend=$DLOCK_BACKEND
unset DLOCK_BACKEND
# shellcheck disable=SC2034  # the rows use them
{
  printf -v long '%0255d' 0
  printf -v huge '%0100000d' 0
  default_directory=$([[ $EUID == 0 ]] && echo /run/dlock || echo "/tmp/dlock-$EUID")
  mapfile -t many < <(printf -- '--key=%d\n' {1..65})
}
deep=$(head -c 100000 /dev/zero | tr '\0' '[')

failures=0
wrong() {
  echo "$row: $*" >&2
  failures=$((failures + 1))
}

# check STATUS TEXT WORD...: the words are a command line, with settings before it.
check() {
  local want=$1 text=$2 got=0 said printed
  shift 2
  env "$@" >out 2>err </dev/null || got=$?
  IFS= read -r -d '' said <err || true
  IFS= read -r -d '' printed <out || true
  ((got == want)) || wrong "status $got: $said"
  [[ $said == dlock:\ *"$text"*$'\n' ]] || wrong "the text is not in: $said"
  [[ ${said%$'\n'} != *$'\n'* ]] || wrong "more than one line: $said"
  [[ -z $printed ]] || wrong "stdout: $printed"
  ((${#said} < 700)) || wrong "longer than anybody reads: $said"
  [[ ${said%$'\n'} != *[[:cntrl:]]* ]] || wrong "a control character reaches the terminal"
  [[ $said != *hunter2* ]] || wrong "a password is shown: $said"
  [[ ! -e ran ]] || wrong "the command was run"
}

# command_line TEXT: sets `words`, with the options `config` where it does not name a config file itself.
command_line() {
  local dlock=$DLOCK options=("${config[@]}") i
  [[ $1 != *--config* ]] || options=()
  eval "words=($1)"
  for ((i = 0; i < ${#words[@]}; ++i)); do
    [[ ${words[i]} != dlock ]] || break
  done
  if ((i == ${#words[@]})); then
    words=("$dlock" run -k job "${options[@]}" "${words[@]}" -- touch ran)
  else
    words[i]=$dlock
    words+=("${options[@]}")
  fi
  ((${#config[@]})) || words=("DLOCK_BACKEND=$file_backend" "${words[@]}")
}

rows=0
while IFS= read -r row; do
  [[ -n $row && $row != '#'* ]] || continue
  rows=$((rows + 1))
  line=${row#* | }
  line=${line% | *}
  config=()
  if [[ $line == *'< '* || $line == '<' ]]; then
    content=${line#*<}
    content=${content# }
    content=${content/\$deep/$deep}
    printf '%b\n' "${content//\$default_directory/$default_directory}" >config.json
    config=(--config config.json)
  fi
  command_line "${line%%<*}"
  check "${row%% | *}" "${row##* | }" "${words[@]}"
done <"$table"
((rows > 200)) || fail "only $rows rows were read"
((failures == 0)) || fail "the above does not hold"
assert_equal '' "$(ls -A "$locks")" "what is in the lock directory when all was refused"

# The other side of the limits is fine.
mkdir other
export DLOCK_BACKEND=file://$tmp/other
for key in "$long" ' ' '.' '..' 'a/b' $'\u202e' '*?[]' "';--" '-n' '%2F' $'\U1F512'; do
  "$DLOCK" run -n "--key=$key" --ttl 24h --kill-after 1 -E 0 -- true 2>err ||
    fail "a good key is refused: $key ($(<err))"
done
"$DLOCK" run -k slots --slots 1024 --ttl 1 -E 255 --wait 0 --label '' --max-hold 0 -- true
expect_status 0 "$DLOCK" run -k job --kill-after 1h -- true     # there is no ttl
expect_status 0 "$DLOCK" run --label -k=x -k --label=y -- true  # values of options
expect_status 0 "$DLOCK" run -qnkjob=1 -- true
expect_status 0 "$DLOCK" run -k job -- test -k=x = -k=x         # arguments of the command
