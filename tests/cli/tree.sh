# shellcheck shell=bash
# For scripts that end a job in a world that makes it hard.  After lib.sh:
#   . "$(dirname "$0")/tree.sh"
# writes $tmp/tree: a job of a shell, its child, one that ignores SIGTERM and is in a session of its own, and a daemon
# that forked twice.  Each has $mark on its command line.
: "${tmp:?lib.sh comes first}"

mark=dlock-tree-$$-$RANDOM
cat >"$tmp/tree" <<SH
#!/bin/sh
sh -c 'trap "" TERM; touch "$tmp/a"; while :; do sleep 0.1; done' $mark &
setsid sh -c 'trap "" TERM HUP; touch "$tmp/b"; while :; do sleep 0.1; done' $mark &
setsid sh -c 'sh -c "trap \"\" TERM; touch $tmp/c; while :; do sleep 0.1; done" $mark & exit 0' $mark &
until [ -e "$tmp/a" ] && [ -e "$tmp/b" ] && [ -e "$tmp/c" ]; do sleep 0.01; done
touch "$tmp/grown"
exec sh -c 'while :; do sleep 0.1; done' $mark
SH
chmod +x "$tmp/tree"

# How many of its processes are there.
tree_size() { pgrep -c -f -- "$mark" || true; }

# The job has started all of them.
tree_is_grown() { [[ -e $tmp/grown ]] && (($(tree_size) == 4)); }

# assert_felled WHAT: none of them is left; removes what marks its growth.
assert_felled() {
  assert_equal 0 "$(tree_size)" "OUTLIVED: processes of the job that are left, $1"
  rm -f "$tmp"/{a,b,c,grown}
}

# Nothing of a failed test stays behind.
at_exit() { pkill -KILL -f -- "$mark"; }
