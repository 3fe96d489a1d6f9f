#!/usr/bin/env bash
# ctest: every kind of backend
# "dlock list" prints a line for each holder of each lock, in aligned columns, and tells on stderr where
# it looked when there is none.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

host=$(uname -n)
duration='[0-9.]+(ms|s)'
list() { "$DLOCK" list "$@" 2>err || fail "dlock list $* ends with status $? ($(<err))"; }
# line N: of ./out, with one blank instead of many.
line() { sed -n "$1{s/  */ /g;p}" out; }

# Nothing there.
list >out
assert_equal '' "$(<out)" "stdout of a list of nothing"
assert_equal "dlock: no locks in $location" "$(<err)" "stderr of a list of nothing"
list -q >out
assert_equal '/' "$(<out)/$(<err)" "what a quiet list of nothing says"

# One lock.
holder a -k job
list >out
assert_equal 2 "$(wc -l <out)" "lines that list one lock"
assert_equal '' "$(<err)" "stderr of a list of one lock"
assert_equal 'KEY HOST PID HELD COMMAND' "$(line 1)" "header"
[[ $(line 2) =~ ^"job $host ${pid[a]} "${duration}' ./job'$ ]] || fail "the list: $(<out)"

# Locks of all kinds, by name, and the columns that only some of them need.
holder b -k shared --shared
holder c -k shared --shared --label 'a label'
holder d -k slots --slots 3
waiter e job
list >out
assert_equal 'KEY MODE HOST PID HELD WAIT COMMAND LABEL' "$(line 1)" "header"
[[ $(line 2) =~ ^"job $host "[0-9]+' '.*' 1 ./job -'$ && $(line 3) =~ ^'shared shared '.*' 0 ./job ' &&
  $(line 5) =~ ^'slots slot 1/3 '.*' 0 ./job -'$ ]] || fail "the list: $(<out)"
columns=key,mode,slots,pid,waiting,command,label
{
  echo 'KEY MODE SLOTS PID WAIT COMMAND LABEL'
  echo "job exclusive 1 ${pid[a]} 1 ./job -"
  echo "shared shared 1 ${pid[b]} 0 ./job -"
  echo "shared shared 1 ${pid[c]} 0 ./job a label"
  echo "slots slots 3 ${pid[d]} 0 ./job -"
} | sort >expected
list --output $columns | sed 's/  */ /g' | sort >out
assert_equal "$(<expected)" "$(<out)" "all that is held"
list --output key >out
assert_equal $'KEY\njob\nshared\nshared\nslots' "$(<out)" "the order of the list"
list -o pid -o key,waiting,pid job >out
assert_equal "PID KEY WAIT PID,${pid[a]} job 1 ${pid[a]}" "$(line 1),$(line 2)" "columns of my own"

# They are aligned: under each heading, at its place, a cell begins.
list >out
python3 - out <<'PY' || fail "the columns are not aligned: $(<out)"
import re, sys
header, *rows = open(sys.argv[1]).read().splitlines()
starts = [found.start() for found in re.finditer(r'(?:^|(?<=  ))\S', header)]
assert len(starts) >= 7, starts
for row in rows:
    for start in starts:
        if header[start:].startswith('MODE '): continue  # that of an exclusive lock is empty
        assert row[start] != ' ' and row[:start].endswith(('', '  ')[start > 0]), (start, row)
PY

# A prefix is one, and no pattern; but people write the star of one behind it.  Several can be given.
for prefix in s 's*' 'slots sh' 'slots shared'; do
  # shellcheck disable=SC2086  # words
  list -o key $prefix >out
  assert_equal $'KEY\nshared\nshared\nslots' "$(<out)" "the list of $prefix"
done
list -o key slots >out
assert_equal $'KEY\nslots' "$(<out)" "the list of slots"
for prefix in 'S' 'slots1' '?'; do
  list "$prefix" >out
  assert_equal '' "$(<out)" "the list of $prefix"
  assert_equal "dlock: no locks that begin with \"$prefix\" in $location" "$(<err)" "stderr"
done
list x y >out
assert_equal "dlock: no locks that begin with \"x\" or \"y\" in $location" "$(<err)" "stderr"

# --older-than.
list --older-than 1h >out
assert_equal '' "$(<out)" "what is older than an hour"
assert_contains "$(<err)" "as old as that in $location" "stderr"
older() { [[ $("$DLOCK" list -q -o pid --older-than 0.5 shared) == *"${pid[c]}"* ]]; }
wait_until 30 older
holder f -k shared --shared
# b is a moment older than it was just now, f is not.
only_older() {
  local age
  age=$("$DLOCK" list --json -o held shared | sed -n 's/.*"held_ms": //p' | sort -n | tail -n 1)
  list -q -o pid --older-than "$((age - 1))ms" shared >out
  [[ $(<out) == *"${pid[b]}"* && $(<out) != *"${pid[f]}"* ]]
}
wait_until 30 only_older

# A column that is not there: all are named.
expect_status 64 "$DLOCK" list --output key,age >out 2>err
assert_equal 1 "$(wc -l <err)" "lines on stderr"
for name in '"age"' key mode slots id host pid user command label since held expires until fence foreign \
  waiting; do
  assert_contains "$(<err)" "$name" "the columns that there are"
done

for name in how what nodes waited waiting_since ''; do
  expect_status 64 "$DLOCK" list --output "$name" 2>err
done

# What is too wide is cut on a terminal, and nowhere else.
finish a b c d e f
job=$tmp/$(printf 'c%.0s' {1..150})
cp job "$job"
label=$(printf 'l%.0s' {1..150})
holder g -k wide --label "$label"
cat >terminal.py <<'PY'
# terminal.py COLUMNS ARGUMENTS...: dlock list ARGUMENTS on a terminal of so many columns; writes what
# that shows.
import fcntl, os, pty, struct, subprocess, sys, termios

master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(sys.argv[1]), 0, 0))
dlock = subprocess.Popen([os.environ['DLOCK'], 'list', *sys.argv[2:]], stdin=slave, stdout=slave, stderr=slave)
os.close(slave)
seen = b''
try:
    while chunk := os.read(master, 4096):
        seen += chunk
except OSError:
    pass
sys.stdout.buffer.write(seen.replace(b'\r\n', b'\n'))
sys.exit(dlock.wait())
PY
# on_terminal COLUMNS WIDTH ARGUMENTS...: there it is so wide, a header, a line, and where that was.
on_terminal() {
  local columns=$1 width=$2
  shift 2
  python3 terminal.py "$columns" "$@" >out
  assert_equal "1 holder of 1 lock in $location" "$(sed -n '/^1 holder/,$p' out | xargs)" "what stands under the list"
  sed -i '/^1 holder/,$d' out
  assert_equal "2/$width" "$(wc -l <out)/$(wc -L <out)" "lines and width with $columns columns ($(<out))"
}
list >out
assert_contains "$(<out)" "  $job" "the list in a pipe"
on_terminal 80 80
assert_lacks "$(<out)" COMMAND "the list on a terminal, where the label has the room"
on_terminal 120 120
on_terminal 0 80  # it does not tell
on_terminal 80 80 -o key,command,label,pid
[[ $(line 2) =~ ^"wide ${job:0:8}"[^\ ]*'… llllllll'[^\ ]*"… ${pid[g]}"$ ]] || fail "the list: $(<out)"
python3 terminal.py 999 -o key,command,label >out
assert_equal "wide $job $label" "$(line 2)" "the list on a wide terminal"
finish g
