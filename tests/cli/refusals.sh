# shellcheck shell=bash disable=SC2034  # port is for the scripts
# For the scripts about what a server refuses, what is none of its kind and what is not there: it ends in
# the right status and in one line on stderr, soon, and starts nothing.  In $tmp, after lib.sh and these:
#   product=redis    as it is called in messages about a server
#   secret=PASSWORD  to be in no message
#   . "$TEST_SOURCE/tests/cli/refusals.sh"
: "${tmp:?lib.sh comes first}" "${product:?}"
need python3

# refuses STATUS TEXT URL [OPTIONS]: dlock run with this backend, and half a second to reach it; of the key "job", unless
# the options name another.
refuses() {
  local want=$1 text=$2 url=$3 got=0 begun=$EPOCHSECONDS key=(-k job)
  shift 3
  [[ " $* " != *' -k '* ]] || key=()
  DLOCK_BACKEND=$url timeout -s KILL 60 \
    "$DLOCK" run "${key[@]}" --connect-timeout 0.5 "$@" -- touch ran 2>err || got=$?
  assert_equal "$want" "$got" "exit status for $url $* ($(<err))"
  lib_refusal "$text" "$url $*"
  ((EPOCHSECONDS - begun <= 10)) || fail "$url took $((EPOCHSECONDS - begun)) s to be refused"
  [[ ! -e ran ]] || fail "the command was run with $url"
  if ((want == 69 || want == 77)); then assert_contains "$(<err)" "dlock: $product " "stderr for $url"; fi
}

# looks_refused STATUS TEXT COMMAND...: a command for operators, with nothing on stdout.
looks_refused() {
  local want=$1 text=$2 got=0
  shift 2
  timeout -s KILL 60 "$DLOCK" "$@" --connect-timeout 0.5 >out 2>err </dev/null || got=$?
  assert_equal "$want/" "$got/$(<out)" "status and stdout of $* ($(<err))"
  lib_refusal "$text" "$*"
}

# works URL [OPTIONS]: dlock run does.
works() {
  local url=$1
  shift
  DLOCK_BACKEND=$url "$DLOCK" run -k job -n "$@" -- true 2>err || fail "status $? for $url $* ($(<err))"
}

lib_refusal() { # TEXT WHAT
  assert_equal 1 "$(wc -l <err)" "lines on stderr for $2 ($(<err))"
  assert_contains "$(<err)" "$1" "stderr for $2"
  [[ -z ${secret-} ]] || assert_lacks "$(<err)" "$secret" "stderr for $2"
}

# impostors greeting|answering: starts servers that are something else, which say the same to everybody, at
# once or to all that they are sent.  On stdin a name and bytes as Python writes them, a line each.  Sets ${port[NAME]}.
# There is a `full` one, too, which takes no connection, and to which none is refused.
declare -A port=()
impostors() {
  local name number
  cat >impostors.py <<'PY'
import socket, sys, threading

greeting = sys.argv[1] == 'greeting'

def serve(name, words):
    listener = socket.create_server(('127.0.0.1', 0))
    print(name, listener.getsockname()[1], flush=True)
    def talk(connection):
        try:
            if greeting:
                connection.sendall(words)
            while connection.recv(65536):
                if not greeting:
                    connection.sendall(words)
        except ConnectionError:
            pass
    def run():
        while True:
            threading.Thread(target=talk, args=(listener.accept()[0],)).start()
    threading.Thread(target=run).start()

for line in open('impostors'):
    name, words = line.split(None, 1)
    serve(name, eval(words))
full = socket.create_server(('127.0.0.1', 0), backlog=0)  # and nobody accepts
clients = []
for i in range(4):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(full.getsockname())
    clients.append(client)
print('full', full.getsockname()[1], flush=True)
PY
  cat >impostors
  python3 impostors.py "$1" >ports &
  wait_until 20 grep -qs full ports
  while read -r name number; do port[$name]=$number; done <ports
}
