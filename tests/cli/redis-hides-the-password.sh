#!/usr/bin/env bash
# A password for redis stays where it was put: see passwords.sh.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/passwords.sh"
product=redis
. "$(dirname "$0")/refusals.sh"

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
# A server that repeats what it was sent.
impostors answering <<END
near b"-ERR syntax error near 'AUTH bob $secret'\r\n"
escaped b"-ERR near \"AUTH bob ${secret:0:3}\\\\${secret:3}\"\r\n"
unknown b"-ERR unknown command 'AUTH', with args beginning with: '${secret:0:9}\r\n"
END
for name in near escaped unknown; do
  hides_in_bad_url "redis://bob:$secret@127.0.0.1:${port[$name]}"
  assert_lacks "$(<err)" "${secret:0:9}" "stderr with the beginning of a password"
  assert_lacks "$(<err)" "${secret:3}" "stderr with a password that is escaped"
  DLOCK_BACKEND="redis://bob:$secret@127.0.0.1:${port[$name]}" \
    expect_status "$([[ $name == unknown ]] && echo 64 || echo 69)" "$DLOCK" run --connect-timeout 0.5 \
    --status-file status -k job -- true 2>err
  hidden "$(<status)" "the status file"
done
hides_in_bad_url "redis://:$secret@h:99999" "redis://u:$secret@127.0.0.1:1/x" "redis://:$secret@a b"
