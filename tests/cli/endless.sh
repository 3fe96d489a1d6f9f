# shellcheck shell=bash disable=SC2034  # port is for the scripts
# Servers that cost their client memory or time without end: see endless_server.py.  After lib.sh:
#   . "$(dirname "$0")/endless.sh"
: "${tmp:?lib.sh comes first}"
need python3

# start_endless ANSWER: sets $port.
start_endless() {
  python3 "$TEST_SOURCE/tests/cli/endless_server.py" "$1" >"$tmp/port-$1" &
  wait_until 20 test -s "$tmp/port-$1"
  port=$(<"$tmp/port-$1")
}

# ends_endless STATUS SECONDS TEXT ARGUMENTS...: dlock ARGUMENTS ends so in so many seconds, says this, and no process
# of it has used more than 500 MiB; with sanitizers memory proves nothing.
ends_endless() {
  local want=$1 seconds=$2 text=$3 status kib
  shift 3
  read -r status kib < <(python3 - "$seconds" "$DLOCK" "$@" <<'PY'
import resource, subprocess, sys
err = open("err", "w")
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=err, stderr=err)
try:
    status = process.wait(float(sys.argv[1]))
except subprocess.TimeoutExpired:
    process.kill()
    process.wait()
    status = "late"
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
)
  echo "$text: status $status, $((kib / 1024)) MiB, $(<err)"
  assert_equal "$want" "$status" "status of $* ($(<err))"
  assert_contains "$(<err)" "$text" "stderr of $*"
  grep -q __asan_init "$DLOCK" || ((kib < 500 * 1024)) || fail "$((kib / 1024)) MiB for $*"
}
