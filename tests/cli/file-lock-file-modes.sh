#!/usr/bin/env bash
# Lock files have the group of their directory, and the mode that its bits allow: whatever the umask, and whoever
# made them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"

# try_mode MODE OWNER GROUP EXPECTED USER: in a directory like this, the lock file of this user is like that.
try_mode() {
  local dir=$tmp/directory-$1-$3 key file mask mode
  for mask in 000 022 077; do
    umask $mask
    install -d -m "$1" -o "${uid[$2]}" -g "$3" "$dir"
    for mode in '' --shared --slots=2; do
      key=$5-$mask${mode/=/-}
      expect_status 0 "${!5}" run -q -n -b "file://$dir" -k "$key" ${mode:+"$mode"} -- true
      file=$dir/$key
      assert_equal "$4 $3" "$(stat -c '%a %g' "$file")" "mode and group of $file"
    done
  done
  umask 022
}

# Our own.
try_mode 0700 alice "${uid[alice]}" 600 alice
try_mode 0700 root 0 600 root
# A group's; without the bit of mode 2000, too.
for user in alice bob root; do
  try_mode 2770 root $team 660 $user
  try_mode 0770 root $team 660 $user
done
# Everybody's: its group need not be ours.
dir=$tmp/everybody
install -d -m 1777 "$dir"
for user in alice eve root; do
  for mask in 000 077; do
    umask $mask
    expect_status 0 "${!user}" run -q -n -b "file://$dir" -k $user$mask -- true
    assert_equal 666 "$(stat -c %a "$dir/$user$mask")" "mode of the lock file of $user"
  done
done
