#!/usr/bin/env bash
# What cannot be done as asked is refused before anything is touched, in one line on stderr that says what is wrong
# and shows no password: each row of refused-command-lines.txt.
. "$(dirname "$0")/lib.sh"

table=$(dirname "$(realpath "$0")")/refused-command-lines.txt
cd "$tmp"
umask 077
nowhere=$DLOCK_BACKEND
# For the rows.
printf -v long '%0255d' 0
printf -v huge '%0100000d' 0
default_directory=$([[ $EUID == 0 ]] && echo /run/dlock || echo "/tmp/dlock-$EUID")
deep=$(head -c 100000 /dev/zero | tr '\0' '[')
mapfile -t many < <(printf -- '--key=%d\n' {1..65})

failed=0
wrong() {
  echo "$row: $*" >&2
  failed=1
}

# check STATUS TEXT WORD...: the words are a command line, with settings before it.
check() {
  local want=$1 text=$2 got=0 settings=()
  shift 2
  [[ "$*" == *[sS][hH][aA][rR][dD]* || -n $config ]] || settings=("DLOCK_BACKEND=$nowhere")
  while [[ $1 == *=* ]]; do
    settings+=("$1")
    shift
  done
  (
    unset DLOCK_BACKEND
    ((${#settings[@]} == 0)) || export "${settings[@]}"
    exec "$DLOCK" "${@:2}"
  ) >out 2>err </dev/null || got=$?
  local said out
  IFS= read -r -d '' said <err || true
  IFS= read -r -d '' out <out || true
  ((got == want)) || wrong "status $got: $said"
  [[ $said == dlock:\ *"$text"*$'\n' ]] || wrong "the text is not in: $said"
  [[ ${said%$'\n'} != *$'\n'* ]] || wrong "more than one line: $said"
  [[ -z $out ]] || wrong "stdout: $out"
  ((${#said} < 700)) || wrong "longer than anybody reads: $said"
  [[ ${said%$'\n'} != *[[:cntrl:]]* ]] || wrong "a control character reaches the terminal"
  [[ $said != *hunter2* ]] || wrong "a password is shown: $said"
  [[ ! -e ran ]] || wrong "the command was run"
}

rows=0
while IFS= read -r row; do
  [[ -n $row && $row != '#'* ]] || continue
  rows=$((rows + 1))
  status=${row%% | *} text=${row##* | } line=${row#* | }
  line=${line% | *} config=
  if [[ $line == '<'* || $line == *' < '* ]]; then
    config=${line#*<}
    config=${config# }
    line=${line%%<*}
    # A NUL byte is in none of the shell's variables.
    printf '%b\n' "${config/\$deep/$deep}" >config.json
    config=(--config config.json)
    [[ $line != *--config* ]] || config=
  fi
  eval "words=($line)"
  if [[ ${words[0]-} == -* || ${words[0]-} == odd || -z ${words[*]-} && -n $config ]]; then
    words=(dlock run -k job ${config:+"${config[@]}"} "${words[@]}" -- touch ran)
  elif [[ -n $config ]]; then
    words+=("${config[@]}")
  fi
  check "$status" "$text" "${words[@]}"
done <"$table"
((rows > 200)) || fail "only $rows rows were read"
((failed == 0)) || fail "the rows above do not hold"
assert_equal '' "$(ls -A "$locks")" "what is in the lock directory when all was refused"

# The other side of the limits is fine.
other=file://$tmp/other
mkdir other
export DLOCK_BACKEND=$other
for key in "$long" ' ' '.' '..' 'a/b' $'\u202e' '*?[]' "';--" '-n' '%2F' $'\U1F512'; do
  "$DLOCK" run -n "--key=$key" --ttl 24h --kill-after 1 -E 0 -- true 2>err ||
    fail "a good key is refused: $key ($(<err))"
done
"$DLOCK" run -k slots --slots 1024 --ttl 1 -E 255 --wait 0 --label '' --max-hold 0 -- true
expect_status 0 "$DLOCK" run -k job --kill-after 1h -- true               # there is no ttl
expect_status 0 "$DLOCK" run --label -k=x -k --label=y -- true            # values of options
expect_status 0 "$DLOCK" run -qnkjob=1 -- true
expect_status 0 "$DLOCK" run -k job -- test -k=x = -k=x                   # arguments of the command
