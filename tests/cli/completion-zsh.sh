#!/usr/bin/env bash
# After an installation TAB in zsh offers what "dlock complete" answers, quotes it, and completes the user's own command
# behind "--".
. "$(dirname "$0")/lib.sh"
need zsh
. "$TEST_SOURCE/tests/cli/completions.sh"

# What is typed is waiting when zsh sees the TAB: that must not make it a blank (insert-tab).
cat >"$HOME/.zshrc" <<'ZSH'
fpath=(~/.local/share/zsh/site-functions $fpath)
autoload -Uz compinit && compinit -u -D
unsetopt beep auto_menu
zstyle ':completion:*' insert-tab false
ZSH
typed+=("${inner[@]}")
ZDOTDIR=$HOME expect_typed zsh -d -i

# Below /usr, the zsh of Debian looks for what packages install.
for prefix in /usr /usr/local; do
  DESTDIR=$tmp/image cmake --install "${DLOCK%/src/dlock}" --prefix "$prefix" >"$tmp/install.log" || fail "$(<"$tmp/install.log")"
done
for at in /usr/share/zsh/vendor-completions /usr/local/share/zsh/site-functions; do
  [[ -e $tmp/image$at/_dlock ]] || fail "nothing is installed in $at"
done
