#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: cost 35
# Whatever somebody writes where the records of a lock are: list, show and force-release still tell that it
# is held, as text and as JSON, and print nothing that could do something to a terminal.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need flock python3

# record: of the holder of "job", a JSON object.  set_record FILE: what is there instead.
case $backend in
  file)
    record() { sed -n 2p "$locks/job~w/"h*; }
    set_record() { { cat header "$1"; echo; } >"$(echo "$locks/job~w/"h*)"; }
    ;;
  redis | redlock)
    record() { rcli server get '{dlock:job}:owner'; }
    set_record() {
      local name
      for name in "${!redis_port[@]}"; do
        [[ $(rcli "$name" -X new set '{dlock:job}:owner' new keepttl <"$1") == OK ]]
      done
    }
    ;;
  zookeeper)
    node() { echo "/dlock/job/$(zk server ls /dlock/job | sort | head -n 1)"; }
    record() { zk server get "$(node)"; }
    # It takes no more than a megabyte.
    set_record() { head -c 1000000 "$1" | zk server set "$(node)" -; }
    ;;
  mysql-*)
    record() { sql server "SELECT record FROM dlock_locks WHERE name = 'job'"; }
    # A BLOB takes no more than 64 kB.
    set_record() {
      sql server <<SQL
UPDATE dlock_locks SET record = X'$(head -c 65535 "$1" | od -An -v -tx1 | tr -d ' \n')' WHERE name = 'job';
SQL
    }
    ;;
  *) skip "nobody has said where $backend keeps its records" ;;
esac

holder a -k job --label nightly
record >intact
[[ $backend != file ]] || head -n 1 "$locks/job~w/"h* >header
mkdir cases
python3 - intact cases <<'PY'
import json, sys

record = open(sys.argv[1]).read()
assert json.loads(record)['label'] == 'nightly', record

def case(name, content):
    open(f'{sys.argv[2]}/{name}', 'wb').write(content if type(content) is bytes else content.encode())

def changed(name, **fields):
    case(name, json.dumps(dict(json.loads(record), **fields)))

evil = '\x1b[31m\x1b]0;title\x07\r\n\0\x9b2J\u202e\u2066\x7f'
texts = ['host', 'user', 'command', 'label', 'acquired_at']
changed('evil', **{name: evil + name for name in texts})
case('evil-raw', record.encode().replace(b'nightly', evil.encode() + b'\xff\xc3('))
changed('long', **{name: '\x1b' * 8000 for name in texts})
changed('empty', **{name: '' for name in texts})
for name, value in dict(list=[evil], object={evil: evil}, null=None, number=-1e300, truth=True).items():
    changed('all-' + name, **{key: value for key in json.loads(record) if key not in ('id', 'lock_pid')})
for name, value in dict(most=2**63 - 1, least=-2**63, more=2**64 - 1, zero=0, minus=-1).items():
    changed('number-' + name, **{key: value for key in (
        'pid', 'fence', 'slots', 'held_ms', 'ttl_ms', 'acquired_ns', 'main_pid')})
changed('another-id', id='0' * 32)
changed('evil-id', id=evil)
changed('evil-mode', mode=evil)
changed('huge', command='x' * 10_000_000)
case('nothing', '')
case('half', record[:len(record) // 2])
case('twice', record + record)
case('evil-text', evil)
case('huge-text', evil * 600_000)
case('deep', '[' * 60_000)
case('deep-object', '{"a":' * 10_000 + '1' + '}' * 10_000)
case('number', '42')
case('bytes', bytes(range(256)) * 8)
PY

# says STATUS ARGUMENTS...: the dlock command ARGUMENTS ends so, at once; what it prints goes to ./out.
says() {
  local want=$1 got=0
  shift
  timeout -s KILL 30 "$DLOCK" "$@" >out 2>err </dev/null || got=$?
  [[ ! -s err ]] || assert_contains "$(head -c 9 err)" "dlock: " "stderr of dlock $* with the record $case"
  cat err >>"said.$case"
  [[ $* == *--json* ]] || cat out >>"said.$case"
  assert_equal "$want" "$got" "status of dlock $* with the record $case ($(head -c 500 err))"
}
for file in cases/*; do
  case=${file#cases/}
  set_record "$file"
  says 0 list
  assert_contains "$(<out)" $'\njob ' "the list with the record $case"
  says 0 list --json
  mv out "$case.list"
  says 0 show job
  assert_contains "$(<out)" 'job: held' "show with the record $case"
  says 0 show --json job
  mv out "$case.show"
  says 0 list --output key,pid,user,command,label,since,held,expires,until,fence,foreign
  says 1 force-release --yes --id fffffffffffff job
  says 64 force-release job
  says 75 run -k job -w 0 -- true
done
set_record intact
finish a

# Commands can have any name, of those who hold as of those who wait.
case=commands
job=$tmp/$'evil\e[31m\r\u202e\u009b\njob'
cp job "$job"
holder a -k job
waiter b job
says 0 list
says 0 show job
assert_contains "$(<out)" '\x1b[31m\x0d\u202e\u009b\x0ajob' "show of commands with such names"
says 0 list --json
mv out "$case.list"
says 0 show --json job
mv out "$case.show"
says 75 run -k job -w 0.5 -- true
touch b.go
says 0 force-release --yes job
ends 79 a
ends 0 b
cat a.err b.err >>said.commands

# Names and values that no dlock would have written.
case=names
case $backend in
  file)
    (
      cd "$locks"
      touch 'job' $'\e[31m' '%1B%5B31m' '%zz' '%6Aob' 'a%00b' '%E2%80%AEbidi' $'bad\xff' 'bad%FF' \
        "$(printf 'k%.0s' {1..255})"
      mkdir -m 0700 folder '=0'
      mkfifo fifo
      ln -s fifo link
      ln -s folder link-to-folder
      ln -s job link-to-job
      ln -s loop loop
      for name in *; do
        if [[ -f $name && ! -L $name ]]; then exec {fd}<"$name"; flock -n "$fd"; fi
      done
      touch "$tmp/taken"
      exec sleep 1000
    ) &
    wait_until 30 test -e taken
    ;;
  redis | redlock)
    evil=$'\e[31m\r\n\u202e\u009b\xff'
    for name in "${!redis_port[@]}"; do
      rcli "$name" set "dlock:$evil" "$evil" px 3600000
      rcli "$name" set "dlock:$(printf 'k%.0s' {1..3000})" "$evil"
      rcli "$name" set 'dlock:' "$evil"
      rcli "$name" set dlock:shed "ADDED:$evil@$evil"
      head -c 10000000 /dev/zero | rcli "$name" -x set dlock:job
      rcli "$name" set '{dlock:job}:queue' "$evil"
      rcli "$name" rpush "dlock:list" "$evil"
      rcli "$name" hset "dlock:hash" "$evil" "$evil" mode "$evil"
      rcli "$name" zadd "dlock:zset" 1 "$evil" inf x
      rcli "$name" zadd '{dlock:list}:queue' 1 x:0 2 '' 3 "$evil"
      rcli "$name" hset '{dlock:zset}:owner' @mode "$evil" "$evil" "$evil"
      rcli "$name" set dlock:far x px 9000000000000000
    done >replies
    ;;
  zookeeper)
    evil=$'\e[31m\r\n\u202e\u009b'
    for name in $'\u202ebidi' 'a b' '%' '%zz' '%6Aob' '%00' "$(printf 'k%.0s' {1..3000})" 'far'; do
      zk server create "/dlock/$name/lock-0000000000" "$evil"
    done
    for name in $'\u202e-lock-0000000000' lock--000000001 '0000000000' 'x9999999999' 'lock-' '%'; do
      zk server create "/dlock/job/$name" "$evil"
    done
    head -c 1000000 /dev/zero | zk server create /dlock/job/lock-0000000002 -
    zk server create /dlock/config "$evil"
    ;;
  mysql-*)
    # Each in turn: names, owners, records of holders, waiters, broken grants and what is none of them.
    evil="X'1b5b33316d0d0ae280aec29bff'"
    far="'9999-12-31 23:59:59'"
    # Only waiters count whose session is there.
    mariadb --no-defaults --user=root --socket="${mysql_dir[server]}/socket" --unbuffered test >marks <<SQL &
SELECT GET_LOCK('dlock.theirs', 0), GET_LOCK(CONCAT('dlock.', $evil), 0), GET_LOCK(CONCAT('dlock.', $evil, 2), 0),
       GET_LOCK('dlock.theirs2', 0), GET_LOCK('dlock.theirs3', 0);
SELECT 'have them';
SELECT SLEEP(1000);
SQL
    marks=$!
    wait_until 20 grep -q 'have them' marks
    sql server <<SQL
SELECT MAX(method) INTO @method FROM dlock_keys;
SET SESSION sql_mode = ''; -- also for words that are none of ours
INSERT INTO dlock_locks (name, role, owner, mode, slots, fence, since, expires_at, record, method, slot) VALUES
  ('job', 'holder', 'theirs', 'exclusive', 1, 18446744073709551615, '1000-01-01', $far, $evil, @method, 0),
  ('job', 'waiter', 'theirs2', '?', 0, 0, $far, $far, '', @method, 0),
  ('job', 'waiter', 'theirs3', 'exclusive', 65535, 0, $far, NULL, REPEAT('[', 65535), @method, 0),
  ('job', 'waiter', $evil, 'exclusive', 65535, 0, '1000-01-01', NULL, $evil, @method, 0),
  ('job', '?', 'theirs4', 'exclusive', 1, 0, '1000-01-01', NULL, '', @method, 0),
  ('job', 'broken', 'theirs5', 'exclusive', 1, 0, '1000-01-01', $far, $evil, @method, 0),
  ('far', 'holder', 'theirs6', 'exclusive', 1, 1, $far, $far, '{}', @method, 0),
  (CONCAT('far', $evil), 'holder', CONCAT($evil, 2), 'slots', 65535, 0, '1000-01-01', $far, $evil, @method, 0),
  ('', 'holder', 'theirs7', 'shared', 0, 0, '1000-01-01', $far, '', @method, 0),
  (REPEAT($evil, 19), 'holder', REPEAT('x', 64), 'slots', 0, 0, '1000-01-01', $far, REPEAT($evil, 5000), @method, 0);
SQL
    ;;
esac
says 0 list
says 0 list --output key,slots,id,pid,user,command,label,since,until,foreign
says 0 show job
says 0 list --json job
mv out "$case.list"
says 0 show --json job
mv out "$case.show"
if [[ $backend == redis || $backend == redlock ]]; then
  says 0 show --json far
  mv out far.show
  for key in shed list hash zset far; do
    says 0 show $key
    says 1 force-release --yes --id ffffff $key
  done
  says 1 force-release --yes list
fi
if [[ $backend == mysql-* ]]; then
  says 0 show --json far
  mv out far.show
  # The session of a holder that another user has opened is not ours to end; it is the row that counts.
  says 0 force-release --yes job
  kill "$marks"
fi

python3 - ./*.list ./*.show said.* <<'PY' || fail "what is printed of hostile records is not harmless"
import json, re, sys, unicodedata

for name in sys.argv[1:]:
    said = open(name, newline='', encoding='utf-8').read()
    forbidden = ['Cc'] if name.startswith('./') else ['Cc', 'Cf']
    bad = {c for c in said if c != '\n' and unicodedata.category(c) in forbidden}
    if bad or len(said) > 200_000:
        sys.exit(f'{name} is {len(said)} long and has {bad}')
    if name.startswith('./'):
        document = json.loads(said)
        lock = document['locks'][0] if name.endswith('.list') else document
        assert lock['key'] in ('job', 'far') and len(lock['holders']) == 1, document
        assert all(type(lock['holders'][0][key]) in (str, type(None)) for key in
                   ('id', 'host', 'user', 'command', 'label', 'acquired_at', 'expires_at')), document
        assert all(lock['holders'][0][key] is None or lock['holders'][0][key] >= 0 for key in
                   ('pid', 'held_ms', 'expires_in_ms', 'fence')), document
        until = lock['holders'][0]['expires_at']
        assert until is None or int(re.match(r'[+]?(\d+)-', until)[1]) > 2024, document
PY
