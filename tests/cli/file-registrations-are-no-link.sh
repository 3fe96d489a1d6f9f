#!/usr/bin/env bash
# In a directory that all may write to, the user who made the folder of a lock's registrations can put a link there:
# what others then rename or remove is theirs in the folder that was there, and nothing elsewhere.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"

shared_directory everybody
chown "${uid[eve]}" "$tmp/everybody"  # fs.protected_symlinks forbids to follow the links of others
as_eve=(setpriv --reuid "${uid[eve]}" --regid "${uid[eve]}" --clear-groups)
alices=$tmp/alices
install -d -m 755 -o "${uid[alice]}" "$alices"

for how in holds waits; do
  roster=$tmp/everybody/$how~w
  DLOCK=$eve holder first -k "$how"
  if [[ $how == holds ]]; then
    finish first
    DLOCK=$alice holder second -k "$how"
  else
    "$alice" run -q -w 60 -k "$how" -- touch ran &
    waiter=$!
    has_two() { (($(find "$roster" -type f | wc -l) == 2)) && compgen -G "$roster/w*" >/dev/null; }
    wait_until 20 has_two
  fi
  # What alice has in a folder of her own may have the same name.
  "${as_eve[@]}" mv "$roster" "$roster.old"
  "${as_eve[@]}" ln -s "$alices" "$roster"
  for name in "$roster.old"/*; do
    name=${name##*/}
    touch "$alices/$name"
    chown "${uid[alice]}" "$alices/$name"
  done
  before=$(find "$alices" -type f | sort)
  [[ -n $before ]] || fail "$how: no registration of alice"
  if [[ $how == holds ]]; then
    finish second
  else
    kill -TERM "$waiter"
    expect_status 143 wait "$waiter"
    finish first
  fi
  assert_equal "$before" "$(find "$alices" -type f | sort)" "files of alice when she $how"
  rm -r "$roster"
  find "$alices" -type f -delete
done
