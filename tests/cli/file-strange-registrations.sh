#!/usr/bin/env bash
# Whatever a member of the group puts where holders and waiters are registered: the others get the lock, and see who
# holds it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
shared_directory everybody

DLOCK=$alice holder a -k job
cd "$tmp/everybody/job~w"
name=h0000000000000001
setpriv --reuid "${uid[eve]}" --regid "${uid[eve]}" --clear-groups sh -ec "
  umask 0
  install -m 000 /dev/null $name-1
  ln -s /etc/passwd $name-2
  ln -s nowhere $name-3
  mkdir -m 000 $name-4
  mkfifo -m 666 $name-5
  mkfifo -m 000 $name-6"
cd "$tmp/work"
DLOCK=$bob waiter b job
for who in alice bob eve root; do
  "${!who}" show job >out
  assert_contains "$(<out)" ", pid ${pid[a]}," "who holds the lock, as $who sees it"
  "${!who}" list >out
  assert_contains "$(<out)" " ${pid[a]} " "who holds the lock, in the list of $who"
done
finish a
runs b
assert_equal 'root:' "$(head -c 5 /etc/passwd)" "what a link leads to"
finish b
