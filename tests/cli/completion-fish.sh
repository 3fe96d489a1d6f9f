#!/usr/bin/env bash
# After an installation TAB in fish offers what "dlock complete" answers, quotes it, and completes the user's own command
# behind "--".
. "$(dirname "$0")/lib.sh"
need fish
unset XDG_DATA_DIRS
. "$TEST_SOURCE/tests/cli/completions.sh"

mkdir "$HOME/.local/share/fish/generated_completions"  # or fish makes it, from all manual pages
typed+=("${inner[@]}")
expect_typed fish -i

# What is offered has its description.
offered=$(fish -c "complete -C 'dlock run --on-lo'")
assert_equal $'--on-lost\twhat to do with the command if the lock is lost' "$offered" 'what fish offers'

# fish does not look below /usr/local.
for prefix in /usr /usr/local; do
  DESTDIR=$tmp/image cmake --install "${DLOCK%/src/dlock}" --prefix "$prefix" >"$tmp/install.log" || fail "$(<"$tmp/install.log")"
done
for at in /usr/share/fish/vendor_completions.d /etc/fish/completions; do
  [[ -e $tmp/image$at/dlock.fish ]] || fail "nothing is installed in $at"
done
