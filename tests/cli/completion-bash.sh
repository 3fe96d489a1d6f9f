#!/usr/bin/env bash
# After an installation TAB in bash offers what "dlock complete" answers, quotes it, and completes the user's own command
# behind "--"; with the package bash-completion, and without it.
. "$(dirname "$0")/lib.sh"
. "$TEST_SOURCE/tests/cli/completions.sh"

echo "source $HOME/.local/share/bash-completion/completions/dlock" >"$tmp/without.rc"
expect_typed bash --noprofile --rcfile "$tmp/without.rc" -i

package=/usr/share/bash-completion/bash_completion
[[ -e $package ]] || skip "the package bash-completion is not installed"
cat >"$tmp/with.rc" <<SH
source $package
_inner() { COMPREPLY=(inner-word); }
complete -F _inner inner-command
SH
typed+=("${inner[@]}" 'dlock run -b k:l -k job -- inner-command ^I' '<run><-b><k:l><-k><job><--><inner-command><inner-word>')
expect_typed bash --noprofile --rcfile "$tmp/with.rc" -i
