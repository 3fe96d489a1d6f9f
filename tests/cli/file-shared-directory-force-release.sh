#!/usr/bin/env bash
# In a directory of a group (mode 2770) or of everybody (mode 1777), force-release breaks the lock of another user: root
# that of a user, and a user that of another one of the same group.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"

# breaks USER NAME: the user breaks "job", which the job NAME of another user holds.
breaks() {
  local got=0
  "${!1}" force-release --yes --reason 'disk is full' job 2>said || got=$?
  assert_equal 0 "$got" "status of force-release by $1 ($(<said))"
  assert_contains "$(<said)" " on $(uname -n), pid ${pid[$2]} (job))" "force-release by $1"
  assert_contains "$(<said)" 'broke "job" (held ' "force-release by $1"
  ends 79 "$2"
  assert_contains "$(<"$2.err")" ': disk is full' "what the holder says"
  gone "$(<"$2.pid")" || fail "the command of the holder goes on"
}

umask 077
for kind in group everybody; do
  shared_directory $kind
  for pair in 'alice bob' 'alice root' 'root bob'; do
    read -r holder breaker <<<"$pair"
    modes=('')
    [[ $pair != 'alice bob' ]] || modes=('' --shared --slots=1)
    for mode in "${modes[@]}"; do
      slot=${mode/--shared/}  # an exclusive waiter, or for the same slot
      DLOCK=${!holder} holder a -k job ${mode:+"$mode"}
      DLOCK=$alice waiter b job ${slot:+"$slot"}
      breaks "$breaker" a
      runs b
      finish b
    done
  done
done
