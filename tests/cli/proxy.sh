# shellcheck shell=bash disable=SC2034  # the arrays are for the scripts
# TCP proxies that do what networks do.  After lib.sh:
#   . "$(dirname "$0")/proxy.sh"
#
#   ${proxy_port[NAME]}  ${proxy_pid[NAME]}  of start_proxy
: "${tmp:?lib.sh comes first}"
declare -gA proxy_port=() proxy_pid=()

# start_proxy NAME PORT: a proxy, on a free port of 127.0.0.1, to this port of it.  Ends with the script.
start_proxy() {
  "$TEST_PROXY" "127.0.0.1:$2" --control "$tmp/proxy-$1" >"$tmp/proxy-$1.port" </dev/null &
  proxy_pid[$1]=$!
  wait_until 20 test -s "$tmp/proxy-$1.port"
  proxy_port[$1]=$(<"$tmp/proxy-$1.port")
}

# proxy NAME COMMAND...: what it shall do from now on; prints the value that was asked for.
#   delay MS, delay-requests MS     of each piece
#   hold, release                   replies come later
#   chunk BYTES                     replies come so many bytes at a time
#   drop                            replies are swallowed; such connections never hear anything again
#   blackhole                       the same, and requests too
#   refuse                          no new connections
#   cut [fin]                       ends the connections there are, by RST or FIN
#   lose-reply-to WORD [COUNT|always [SKIP]]
#                                   requests with the word are carried out, but end in an RST
#   pass                            no faults any more
#   connections, open, lost, bytes  counters: accepted, open now, replies lost, bytes of requests
proxy() {
  local name=$1 answer
  shift
  answer=$("$TEST_PROXY" --control "$tmp/proxy-$name" "$@") || fail "proxy $name $*: $answer"
  [[ $answer == ok ]] || printf '%s\n' "$answer"
}

# lost_replies NAME COUNT: so many replies at least were lost by lose-reply-to.
lost_replies() { (($(proxy "$1" lost) >= $2)); }
