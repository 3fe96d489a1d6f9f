#!/usr/bin/env bash
# ctest: every kind of backend
# "dlock list --json" has all fields always, in their order, with null for what is not known; "dlock show
# --json" is one element of it; and nothing that a command prints has a whole id, which could release.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

host=$(uname -n)
user=$(id -un)
holder a -k job --label 'a "label"'
holder b -k shared --shared
holder c -k shared --shared --ttl 60
holder d -k slots --slots 2
waiter e job --shared
waiter f job
mkdir out
"$DLOCK" list --json >out/list
"$DLOCK" list --json nothing >out/nothing 2>out/nothing.err
for key in job shared slots; do "$DLOCK" show --json "$key" >"out/show.$key"; done
expect_status 1 "$DLOCK" show --json free >out/show.free 2>out/show.free.err
"$DLOCK" list --json --output fence,key,pid,slots >out/chosen
"$DLOCK" show --json -o host job >out/chosen.host
"$DLOCK" show --json -o key job >out/chosen.key

cat >check.py <<'PY'
import datetime, json, os, re, sys

backend, location, ends_on, remembers, host, user = sys.argv[1:7]
remembers = remembers == 'true'
pid = dict(pair.split('=') for pair in sys.argv[7:])

def expect(condition, what):
    if not condition:
        sys.exit(f'{what}: {json.dumps(document)}')

def load(name):
    global document
    document = json.load(open('out/' + name), object_pairs_hook=unique)
    return document

def unique(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)

def text(name, what):
    return open(f'{name}.{what}').read().strip()

def is_count(value):
    return type(value) is int and value >= 0

def seconds_ago(value):
    expect(type(value) is str and re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', value),
           f'not RFC 3339: {value}')
    then = datetime.datetime.fromisoformat(value.replace('Z', '+00:00'))
    return (datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()

LOCK = ['key', 'mode', 'slots', 'holders', 'waiters', 'nodes_agreeing', 'nodes_total', 'remarks']
HOLDER = ['id', 'kind', 'host', 'pid', 'user', 'command', 'label', 'acquired_at', 'held_ms', 'expires_in_ms',
          'expires_at', 'fence', 'slot', 'foreign']
WAITER = ['mode', 'host', 'pid', 'user', 'command', 'waiting_ms', 'waiting_since']

def check_holder(holder, names, ttl=30):
    expect(list(holder) == HOLDER, 'fields of a holder')
    name = next((name for name in names if int(pid[name]) == holder['pid']), None)
    expect(name, f'no pid of {names}')
    token = text(name, 'token')
    expect(re.fullmatch('[0-9a-f]{12}', holder['id']) and token.startswith(holder['id']),
           f'the id is not the beginning of {token}')
    expect(holder['fence'] == int(text(name, 'fence')), 'the fence is not DLOCK_FENCE')
    expect(holder['slot'] == (1 if name == 'd' else None), 'the slot')
    expect((holder['kind'], holder['host'], holder['user'], holder['command'], holder['foreign']) ==
           ('run', host, user, './job', None), 'who holds it')
    expect(is_count(holder['held_ms']) and holder['held_ms'] < 300000, 'held_ms')
    expect(abs(seconds_ago(holder['acquired_at']) - holder['held_ms'] / 1000) < 60, 'acquired_at')
    if ends_on == 'ttl':
        left = holder['expires_in_ms']
        expect(is_count(left) and (ttl - 15) * 1000 < left <= ttl * 1000, 'expires_in_ms')
        expect(-left / 1000 <= seconds_ago(holder['expires_at']) < -left / 1000 + 60, 'expires_at')
    else:
        expect(holder['expires_in_ms'] is None and holder['expires_at'] is None, 'it expires')
    return name

def check_waiter(waiter, name, mode):
    expect(list(waiter) == WAITER, 'fields of a waiter')
    expect((waiter['pid'], waiter['mode']) == (int(pid[name]), mode), f'the waiter {name}')
    expect((waiter['host'], waiter['user'], waiter['command']) == (host, user, './job'), 'who waits')
    expect(is_count(waiter['waiting_ms']) and waiter['waiting_ms'] < 300000, 'waiting_ms')
    expect(waiter['waiting_ms'] / 1000 <= seconds_ago(waiter['waiting_since']) < 300, 'waiting_since')

def check_lock(lock, key, mode, slots):
    expect(list(lock) == LOCK, 'fields of a lock')
    expect((lock['key'], lock['mode'], lock['slots']) == (key, mode, slots), f'the lock {key}')
    expect(is_count(lock['nodes_total']) and 1 <= lock['nodes_agreeing'] <= lock['nodes_total'],
           'nodes')
    expect(lock['remarks'] == [], 'remarks')

def check_job(lock):
    check_lock(lock, 'job', 'exclusive', 1)
    expect(len(lock['holders']) == 1, 'one holder')
    check_holder(lock['holders'][0], 'a')
    expect(lock['holders'][0]['label'] == 'a "label"', 'the label')
    expect(len(lock['waiters']) == 2, 'two waiters')
    check_waiter(lock['waiters'][0], 'e', 'shared')
    check_waiter(lock['waiters'][1], 'f', 'exclusive')

def check_shared(lock):
    check_lock(lock, 'shared', 'shared', 1)
    expect(len(lock['holders']) == 2, 'two holders')
    names = set()
    for holder in lock['holders']:
        names.add(check_holder(holder, 'bc', 60 if holder['pid'] == int(pid['c']) else 30))
        expect(holder['label'] is None, 'no label')
    expect(names == {'b', 'c'} and lock['waiters'] == [], 'its holders and waiters')

def check_slots(lock):
    check_lock(lock, 'slots', 'slots', 2)
    expect(len(lock['holders']) == 1 and lock['waiters'] == [], 'one holder')
    check_holder(lock['holders'][0], 'd')

listed = load('list')
expect(list(listed) == ['backend', 'locks'] and listed['backend'] == location, 'the list')
expect([lock['key'] for lock in listed['locks']] == ['job', 'shared', 'slots'], 'what is listed')
check_job(listed['locks'][0])
check_shared(listed['locks'][1])
check_slots(listed['locks'][2])

def shown(key):
    """show tells also whether the job of this key is done."""
    lock = load(f'show.{key}')
    expect(lock.pop('done') == ([] if remembers else None), 'what is done')
    return lock

check_job(shown('job'))
check_shared(shown('shared'))
check_slots(shown('slots'))

free = shown('free')
check_lock(free, 'free', 'exclusive', 1)
expect(free['holders'] == [] and free['waiters'] == [], 'a free lock')
expect(load('nothing') == {'backend': location, 'locks': []}, 'nothing')
expect(not any(os.path.getsize(f'out/{name}.err') for name in ('nothing', 'show.free')), 'on stderr')

chosen = load('chosen')
expect([list(lock) for lock in chosen['locks']] == [['key', 'slots', 'holders', 'waiters']] * 3,
       'chosen fields of locks')
expect([list(holder) for lock in chosen['locks'] for holder in lock['holders']] ==
       [['pid', 'fence']] * 4, 'chosen fields of holders')
expect([list(waiter) for waiter in chosen['locks'][0]['waiters']] == [['pid']] * 2,
       'chosen fields of waiters')
expect(load('chosen.host') == {'holders': [{'host': host}], 'waiters': [{'host': host}] * 2}, '-o host')
expect(load('chosen.key') == {'key': 'job'}, '-o key')
PY
pids=()
for name in "${!pid[@]}"; do pids+=("$name=${pid[$name]}"); done
python3 check.py "$backend" "$location" "${trait[ends_on]}" "${trait[ids]}" "$host" "$user" "${pids[@]}" ||
  fail "the JSON is not as promised"

# Nor do they that break something, or say all that they do.
"$DLOCK" list -vv >out/list.vv 2>&1
"$DLOCK" show -vv job >out/show.vv 2>&1
"$DLOCK" show -vv -o id,key,label shared >out/show.shared.vv 2>&1
expect_status 1 "$DLOCK" force-release -vv --yes --id 0123456789 job >out/not-broken 2>&1
expect_status 64 "$DLOCK" force-release -vv --older-than 1h job </dev/null >out/refused 2>&1
"$DLOCK" force-release -vv --yes shared >out/broken 2>&1
ends 79 b c
for name in a b c d; do
  token=$(<"$name.token")
  [[ $token =~ ^[0-9a-f]{32}(:[0-9]+)?$ ]] || fail "DLOCK_TOKEN is $token"
  grep -rqF "${token:0:12}" out || fail "$name is nowhere by its short id"
  ! grep -rlF "${token:0:13}" out "$name.err" || fail "more than 12 digits of an id are printed"
done
finish a e f d
