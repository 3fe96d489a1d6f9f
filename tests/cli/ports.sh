# shellcheck shell=bash
# Ports for the servers of a script.  After lib.sh:
#   . "$(dirname "$0")/ports.sh"
: "${tmp:?lib.sh comes first}"
lib_ports=0

# reserve_port VARIABLE: sets it to a port of 127.0.0.1 that belongs to this script until it ends.  Its servers
# can listen on it, end, and listen again; no other program gets it.  Not from within $( ) or ( ).
reserve_port() {
  local file=$tmp/port-$((++lib_ports))
  "$TEST_RESERVED_PORT" >"$file" </dev/null &
  wait_until 20 test -s "$file"
  printf -v "$1" %s "$(<"$file")"
}
