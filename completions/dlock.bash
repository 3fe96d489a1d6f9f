# bash completion for dlock.  "dlock complete" answers, see src/cli/cmd.hpp; nothing that is
# typed or answered is ever expanded.
_dlock() {
  COMPREPLY=()
  local line=${COMP_LINE:0:COMP_POINT} words=() starts=() answer i word typed name
  # bash splits words at "=" and ":" also.  Parts without a blank between them are one word.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    ((i < COMP_CWORD)) || word=${line#"${line%%[![:blank:]]*}"}
    if ((i)) && [[ $line == [![:blank:]]* ]]; then words[-1]+=$word; else starts+=("$i") words+=("$word"); fi
    line=${line#*"$word"}
  done
  # dlock sees the words without quotes, and of the last one only what is before the first quote.
  local last=${words[-1]}
  words=("${words[@]//[\"\'\\]/}")
  words[-1]=${last%%[\"\'\\]*}
  mapfile -t answer < <(command dlock complete -- "${words[@]:1}" 2>/dev/null)
  case ${answer[0]-} in
    $'\tfiles') compopt -o default ;;
    $'\tcommand '*)
      name=$(declare -F _comp_command_offset || declare -F _command_offset)  # of the package bash-completion
      if [[ $name ]]; then "$name" "${starts[${answer[0]#*d }]}"; else compopt -o default; fi
      ;;
    *)
      # What is offered replaces $2; but _command_offset passes ":" where that is empty.
      local part=${2#[\"\']}
      [[ $COMP_WORDBREAKS != *"$part"* ]] || part=
      # Offered as it must be typed.  Inside an open quotation mark, only what needs no quotes is offered.
      for name in "${answer[@]%%$'\t'*}"; do
        printf -v word %q "$name"
        word=${word//\\,/,}  # a comma has a meaning only within braces, and these are quoted
        [[ $word == "$name" ]] && typed=${last//[\"\']/} || typed=$last
        [[ $word == "$typed"* ]] && COMPREPLY+=("${word#"${typed%"$part"}"}")
      done
      ;;
  esac
}
complete -o nosort -F _dlock dlock
