#!/usr/bin/env bash
# docker run, ssh and systemd-run are only clients: what they start is a process of somebody else.  With dlock on the
# other side the job holds the lock for as long as it runs, whatever becomes of the client.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/recipe.sh"

prod_is_redis
export DLOCK_BACKEND=prod

# The other side runs one command line after the other, in the background: no client is its parent.
mkfifo door
exec {far}<>door
(
  while read -r line; do sh -c "$line" & done
) <&"$far" 2>far.err &
executable job <<'SH'
#!/bin/sh
echo $$ >>ran
until test -e "stop.$$"; do sleep 0.02; done
SH
executable bin/client <<SH
#!/bin/sh
# What is behind the options and the name of the image or host is the command.
while :; do case \$1 in -* | run | IMAGE | web-3) shift ;; *) break ;; esac; done
echo "cd $tmp; exec \$*" >$tmp/door
exec sleep 1000
SH
for name in docker ssh systemd-run; do ln -s client bin/$name; done

jobs_are() { (($(wc -l <ran) == $1)); }
recipe other-side >lines
assert_equal 3 "$(wc -l <lines)" "clients in the recipe"
: >ran
started=0
while read -r line; do
  sh -c "exec $line" &
  started=$((started + 1))
  wait_until 30 jobs_are $started
  kill -KILL $!
  wait $! 2>/dev/null || true
  got=0
  dlock run -b prod -n -k job -- true 2>err || got=$?
  assert_equal 75 "$got" "status beside the job of: $line"
  touch "stop.$(tail -n 1 ran)"
  wait_until 30 is_free job
done <lines

# With dlock on this side: the container that is left is removed before the next one starts; with --scope, the job is a
# child of the client, so dlock ends it.
rm bin/docker bin/systemd-run
executable bin/docker <<'SH'
#!/bin/sh
echo "$*" >>dockers
SH
executable bin/systemd-run <<'SH'
#!/bin/sh
while :; do case $1 in --scope | --quiet) shift ;; *) exec "$@" ;; esac; done
SH
recipe this-side | sed -z 's/\\\n//g' >lines
sh -c "$(sed -n 1p lines)"
assert_equal "rm -f job;run --rm --name job IMAGE" "$(paste -sd';' dockers)" "what docker is told"
: >ran
sh -c "exec $(sed -n 2p lines)" &
wait_until 30 jobs_are 1
kill -KILL $!
wait $! 2>/dev/null || true
wait_until 30 gone "$(<ran)"
