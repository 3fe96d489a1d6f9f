#!/usr/bin/env bash
# A password for redis stays where it was put: see passwords.sh.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/passwords.sh"

cd "$tmp"
start_redis a
rcli a config set requirepass "$secret" >/dev/null
server() { REDISCLI_AUTH=$secret rcli a "$@"; }
records() {
  local key
  while read -r key; do
    printf '%s: ' "$key"
    case $(server type "$key") in
      string) server get "$key" ;;
      zset) server zrange "$key" 0 -1 ;;
      *) server hgetall "$key" ;;
    esac
  done < <(server keys '*')
}
hides_password redis://:PASSWORD@SERVER redis://SERVER "127.0.0.1:${redis_port[a]}" records
hides_in_bad_url "redis://:$secret@h:99999" "redis://u:$secret@127.0.0.1:1/x" "redis://:$secret@a b"
