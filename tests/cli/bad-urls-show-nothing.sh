#!/usr/bin/env bash
# ctest: cost 10
# A URL that is refused may hold a password anywhere: no part of it is shown, wherever it was given, and with -vv
# and --json as well.
. "$(dirname "$0")/lib.sh"
cd "$tmp"
unset DLOCK_BACKEND
umask 077
marker=secretpw

# nothing_shown WHAT COMMAND...: it is refused, runs nothing, and shows no part of a password.
nothing_shown() {
  local what=$1 got=0
  shift
  : >status
  "$@" >out 2>err </dev/null || got=$?
  ((got == 64 || got == 78)) || fail "exit status $got for $what ($(<err))"
  ! grep -q "$marker" out err status || fail "what is said of $what: $(cat out err status)"
  [[ ! -e ran ]] || fail "the command was run with $what"
}
run=("$DLOCK" run -k job --status-file status --connect-timeout 0.5)
end=(-- touch ran)

# in_config TEXT
in_config() {
  printf '%s\n' "$1" >config.json
}

# Of the layers that can say it and the forms of a message, each text goes through -b and the one whose turn it is.
backend_turn=0 shard_turn=0 server_turn=0
# The same texts go through other layers than before.
shift_turns() { ((backend_turn += 1, shard_turn += 1, server_turn += 1)); }
# as_backend TEXT: given in place of a backend.
as_backend() {
  nothing_shown "--backend $1" "${run[@]}" -b "$1" "${end[@]}"
  case $((backend_turn++ % 6)) in
    0) nothing_shown "DLOCK_BACKEND=$1" env DLOCK_BACKEND="$1" "${run[@]}" -vv "${end[@]}" ;;
    1) nothing_shown "--json -b $1" "${run[@]}" --json -b "$1" "${end[@]}" ;;
    2) nothing_shown "list -b $1" "$DLOCK" list -vv -b "$1" ;;
    3) nothing_shown "backends --schema $1" "$DLOCK" backends --schema "$1" ;;
    4)
      in_config "{\"backend\": \"$1\"}"
      nothing_shown "backend: $1" "${run[@]}" --config config.json "${end[@]}"
      ;;
    5)
      in_config "{\"backends\": {\"db\": {\"url\": \"$1\"}}}"
      nothing_shown "url: $1" "${run[@]}" --config config.json -b db -vv "${end[@]}"
      ;;
  esac
}

as_shard() {
  case $((shard_turn++ % 2)) in
    0) in_config "{\"backends\": {\"db\": {\"shards\": [\"$1\", \"redis://h\"]}}}" ;;
    1) in_config "{\"backends\": {\"db\": {\"shards\": [\"$1,redis://h\"]}}}" ;;
  esac
  nothing_shown "shards: $1" "${run[@]}" -vv --config config.json -b db "${end[@]}"
}

as_server() {
  case $((server_turn++ % 3)) in
    0) nothing_shown "--server h,$1" "${run[@]}" -b redlock -S h -S "$1" "${end[@]}" ;;
    1) nothing_shown "DLOCK_SERVERS=$1" env DLOCK_SERVERS="h1,$1" "${run[@]}" -vv --json -b redlock "${end[@]}" ;;
    2)
      in_config "{\"backend\": \"redlock\", \"servers\": [\"h1\", \"$1\"]}"
      nothing_shown "servers: $1" "${run[@]}" --config config.json "${end[@]}"
      ;;
  esac
}

# Wrong for each backend, and for no backend.
for scheme in file redis rediss redis+unix redis+sentinel redlock zookeeper zk mysql mysql-table mysql-row mysql-version postgres postgres-row nope; do
  for rest in "u:$marker" "u:a:$marker" "[$marker]:1" "app:12?$marker@db1/0" "u:$marker?x@h/0" "u:$marker/x@h:y/0" "h:$marker/0" "[$marker" \
    "[::1]$marker" "a $marker" "u:$marker%zz@h" "h/%zz$marker" "h/0#$marker" "h/0?$marker=1&$marker=2" \
    "h/0?x=$marker%zz" "h/0?$marker" "h/a/$marker/../b?$marker=$marker" "h/0?passwd=$marker"; do
    as_backend "$scheme://$rest"
    [[ $scheme != redis* ]] || as_server "$scheme://$rest"
    [[ $scheme != redis && $scheme != file ]] || as_shard "$scheme://$rest"
  done
  shift_turns
done

# Wrong for some.
for url in "redis://h/$marker" "rediss://h/$marker" "redis+unix:///s?db=$marker" "redis+unix:///s?db=1&$marker=2" \
  "rediss://h?$marker=/x" "rediss://h?cert=$marker" "redis://h?$marker" "redis+unix://u:$marker@h/s" \
  "redis+sentinel://h/m/$marker" "rediss+sentinel://h/m?wait_replicas=$marker" "redis+sentinel://h/m?sentinel_user=$marker"; do
  as_backend "$url"
  as_shard "$url"
  as_server "$url"
done
for url in "redlock://h1,h2/$marker" "redlock://h1,h2?$marker=1" "file://h/$marker" "file://u:$marker@/dir" \
  "file:///dir?$marker" "file:///?$marker" "mysql://h/a/$marker" "mysql://h/$marker%20" \
  "mysql://h/$(printf '%080d' 0)$marker" "mysql://h/app?tls=$marker" "mysql://h/app?$marker=on" \
  "mysql:///app?socket=$marker" "mysql://h/app?tls=verify&ca=$marker" "zk://h/a//$marker" "zk://h/a/../$marker" \
  "zk://h/zookeeper/$marker" "zk://h/$(printf '%0600d' 0)$marker" "zk://h?$marker" "zk://h/%01$marker" \
  "zk://h?tls=$marker" "://u:$marker@h" "a b://u:$marker@h"; do
  as_backend "$url"
  as_shard "$url"
done

# No URL at all.
for text in "u:$marker" "u:$marker@h" "u:12?$marker@h" "$marker@h" "redis:$marker" "redis:/u:$marker@h" "u:$marker:6379" \
  "h:$marker/0" "/$marker" "redis+unix:/bob:$marker@/run/redis.sock" "redis+unix:bob:$marker@/run/redis.sock" \
  "mysql+x:u:$marker@h/db" "zookeeper+x:u:$marker@h" "redis+$marker@h" "redis+$marker:x@h" "mysql-row+tls:/u:$marker@h/a"; do
  as_backend "$text"
  as_shard "$text"
  as_server "$text"
done

expect_status 64 "${run[@]}" -b "redis+unix:/bob:$marker@/run/redis.sock" "${end[@]}" 2>err
assert_contains "$(<err)" "write redis+unix://" "stderr where a slash is missing"

# Such a text counts as a password: no core file, and none in a file that others can read.
if command -v strace >/dev/null; then
  DLOCK_BACKEND="redis:/bob:$marker@h" strace -f -qq -o trace -e trace=prctl "${run[@]}" "${end[@]}" 2>err || true
  assert_contains "$(<trace)" 'PR_SET_DUMPABLE, SUID_DUMP_DISABLE' "system calls with a malformed URL"
fi
for setting in '"backend": "redis:/b:PW@h"' '"backends": {"db": {"url": "redis:/b:PW@h"}}' \
  '"backend": "redis+unix:/run/r.sock?password=PW"' '"backends": {"db": {"shards": ["redis:/b:PW@h"]}}' '"backends": {"p": {"url": "redlock://", "servers": ["redis:/b:PW@h"]}}'; do
  in_config "{${setting//PW/$marker}}"
  chmod 644 config.json
  nothing_shown "$setting" "${run[@]}" --config config.json "${end[@]}"
  assert_contains "$(<err)" "chmod go-rwx" "stderr when others can read $setting"
  rm config.json
done
in_config '{"label": "ops@example.net"}'
chmod 644 config.json
expect_status 0 "${run[@]}" --config config.json -- true
rm config.json

# In the place of a name in the config file, also if it is no URL.
for text in "redis://u:$marker" "redis:/u:$marker@h" "redis:/app:12?$marker@h" "mysql://h/a?password=$marker%zz" \
  "mysql://h/a?password=$marker#1" "mysql:/h/a?password=$marker" "mysql//h?passwd=$marker"; do
  in_config "{\"$text\": \"x\"}"
  nothing_shown "the key $text" "$DLOCK" list --config config.json
  in_config "{\"backends\": {\"$text\": {\"url\": \"file:///tmp\"}}}"
  nothing_shown "the profile $text" "$DLOCK" list --config config.json -b none
  in_config "{\"backends\": {\"$text\": 1}}"
  nothing_shown "the profile $text" "$DLOCK" list --config config.json -b none
done

# In the wrong place.
for text in "redis://u:$marker" "redis://u:$marker@h" "u:$marker@h"; do
  nothing_shown "run $text" "${run[@]}" "$text" "${end[@]}"
  nothing_shown "run $text without --" "${run[@]}" "$text"
  nothing_shown "show job $text" "$DLOCK" show job "$text"
  nothing_shown "$text" "$DLOCK" "$text"
  nothing_shown "--ttl $text" "${run[@]}" --ttl "$text" "${end[@]}"
done
