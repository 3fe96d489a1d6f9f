#!/usr/bin/env bash
# In zsh, TAB offers commands, options, choices, backends and profiles, and completes the user's own
# command behind "--".
. "$(dirname "$0")/lib.sh"

need zsh

cd "$tmp"

export XDG_CONFIG_HOME=$tmp
mkdir bin dlock
ln -s "$DLOCK" bin/dlock
export PATH=$tmp/bin:$PATH
. "$TEST_SOURCE/tests/cli/profiles.sh"
touch some-file

# A zsh on a terminal of its own, in which each TAB appends what is offered to a file and then says
# that it is done.
cat >driver.zsh << 'ZSH'
zmodload zsh/zpty zsh/zselect
zpty shell zsh -f -i
expect() { # waits for $1, at most ten seconds
  local all= chunk
  local -i i
  for (( i = 0; i < 1000; i++ )); do
    if zpty -rt shell chunk; then
      all+=$chunk
      [[ $all == *$1* ]] && return 0
    else
      zselect -t 1  # a hundredth of a second
    fi
  done
  print -u2 "no answer from zsh, only: $all"
  return 1
}
zpty -w shell "source $PWD/setup.zsh; print SET-''UP"
expect SET-UP || exit 1
while IFS= read -r line; do
  zpty -n -w shell $'\C-u'"$line"$'\t'
  expect TAB-DONE || exit 1
  print -- "== $line"
  sort -u offered
  : >offered
done
ZSH
cat >setup.zsh << 'ZSH'
PS1=
fpath=($TEST_SOURCE/completions $fpath)
autoload -Uz compinit
compinit -u -D
unsetopt auto_menu auto_list beep
zstyle ':completion:*' completer _complete
compadd() {
  local -i stop=${@[(i)(-|--)]}
  if [[ -n ${(M)@[1,stop-1]:#-[a-zA-Z]#[OAD]} ]]; then
    builtin compadd "$@"
    return
  fi
  local -a hits
  builtin compadd -A hits "$@"
  (( $#hits )) && print -rl -- ${(Q)hits} >> $XDG_CONFIG_HOME/offered
  builtin compadd "$@"
}
_recorded() {
  local typed=$BUFFER
  zle complete-word
  print -r -- "$typed"$'\n'"$BUFFER" >> $XDG_CONFIG_HOME/written
  zle kill-buffer
  print -n TAB-DONE >/dev/tty
}
zle -C complete-word complete-word _main_complete
zle -N _recorded
bindkey '^I' _recorded
ZSH

lines=(
  'dlock ru'
  'dlock run --on-l'
  'dlock run --on-lost '
  'dlock run --leftovers=k'
  'dlock run -b fi'
  'dlock run --backend pro'
  'dlock help ver'
  'dlock backends --j'
  'dlock acquire --export=f'
  'dlock acquire --export --wh'
  'dlock run --status-file some'
  'dlock run -k job -- unshar'
  'dlock run -k job -- cat some'
)
# Each is the beginning of one profile, as it must be typed.
# shellcheck disable=SC2016  # they are not to be expanded
beginnings=(pro two a '\`' '\$\(' '\$\{' v it '\*' '\{' s i\\\\ k k: : '\#' '\!' '\[' %)
for beginning in "${beginnings[@]}"; do lines+=("dlock run -b $beginning"); done
lines+=('dlock run -b ')
printf '%s\n' "${lines[@]}" | zsh -f driver.zsh >answers || fail "zsh gave no answers: $(cat answers)"

expect() { # what is offered, space-separated, then the command line
  local got
  got=$(awk -v want="== $2" '/^== /{on = ($0 == want); next} on' answers | paste -sd ' ')
  [[ $got == "$1" ]] || fail "\"$2<TAB>\" offers \"$got\", not \"$1\""
}

expect 'run' 'dlock ru'
expect '--on-lost' 'dlock run --on-l'
expect 'ignore kill term' 'dlock run --on-lost '
expect 'kill' 'dlock run --leftovers=k'
expect 'file' 'dlock run -b fi'
expect 'prod' 'dlock run --backend pro'
expect 'version' 'dlock help ver'
expect '--json' 'dlock backends --j'
expect 'fish' 'dlock acquire --export=f'
expect '--while' 'dlock acquire --export --wh'
expect 'some-file' 'dlock run --status-file some'
expect 'some-file' 'dlock run -k job -- cat some'
grep -qx unshare <(awk '/^== /{on = ($0 == "== dlock run -k job -- unshar"); next} on' answers) ||
  fail 'behind "--" no commands are offered'

# The name of a profile is never run: not by TAB, and not by what TAB has put on the command line.
assert_quiet "by TAB"
for beginning in "${beginnings[@]}"; do
  written=$(grep -xF -A1 -- "dlock run -b $beginning" written | tail -n 1)
  word=$(zsh -fc "print -rl -- ${written#dlock run -b }")
  assert_quiet "from the command line as $written"
  grep -qxF -- "$word" <(printf '%s\n' "${profiles[@]}") || fail "\"dlock run -b $beginning<TAB>\" writes $written, which is no profile"
done
awk '/^== /{on = ($0 == "== dlock run -b "); next} on' answers >offered
for name in "${profiles[@]}"; do
  grep -qxF -- "$name" offered || fail "the profile $name is not offered, but: $(<offered)"
done
