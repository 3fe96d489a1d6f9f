"""Many processes of dlock id, killed and stopped at random: no number is ever printed twice.

    id_storm.py DLOCK WORKERS NUMBERS SEED ARGUMENTS...

Each worker runs `dlock id ARGUMENTS --count N` one after the other, with a random N, until it has NUMBERS
numbers. What a killed process has printed counts, too. Statuses 0 and 75 are expected, and of those that are killed -9.
Prints what happened; a promise that is broken ends it with status 1.
"""
import collections
import os
import random
import signal
import subprocess
import sys
import threading
import time

dlock, workers, numbers, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
arguments = sys.argv[5:]
growing = '--name' in arguments
lock = threading.Lock()
seen = {}
counts = collections.Counter()
problems = []


def disturb(process, chance):
    """Kills it, or stops it for up to 1.5 s, or leaves it alone."""
    what = chance.random()
    if what < 0.5:
        return
    time.sleep(chance.random() * chance.random() * 0.006)
    if what < 0.94:
        process.kill()
        counts['killed'] += 1
        return
    process.send_signal(signal.SIGSTOP)
    counts['stopped'] += 1
    time.sleep(chance.random() * 1.5)
    process.send_signal(signal.SIGCONT)


def work(number):
    try:
        take_all(number)
    except Exception as error:  # of this program
        problems.append(repr(error))


def take_all(number):
    chance = random.Random(seed * 1000 + number)
    got = last = 0
    while got < numbers and not problems:
        count = chance.choice([1, 1, 1, 2, 3, 10, 100])
        process = subprocess.Popen([dlock, 'id', *arguments, '--count', str(count)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        disturb(process, chance)
        out, err = process.communicate()
        lines = out.decode().split('\n')
        printed = [int(line) for line in lines[:-1]]  # what is behind the last newline is part of a number
        with lock:
            counts['calls'] += 1
            counts[f'status {process.returncode}'] += 1
            if process.returncode not in (0, 75, -signal.SIGKILL):
                problems.append(f'status {process.returncode}: {err.decode()}')
            if process.returncode == 0 and len(printed) != count:
                problems.append(f'{len(printed)} numbers instead of {count}')
            for value in printed:
                if value in seen:
                    problems.append(f'{value} was printed twice, by workers {seen[value]} and {number}')
                seen[value] = number
        if printed != sorted(set(printed)) or growing and printed and printed[0] <= last:
            problems.append(f'{printed[:3]}... do not grow after {last}')
        last = printed[-1] if printed else last
        got += len(printed)
        if process.returncode == 75:
            time.sleep(0.05)


threads = [threading.Thread(target=work, args=(i,)) for i in range(workers)]
begun = time.monotonic()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f'{len(seen)} numbers, {time.monotonic() - begun:.1f} s, {dict(counts)}')
for problem in problems[:20]:
    print('PROBLEM:', problem, file=sys.stderr)
sys.stdout.flush()
os._exit(1 if problems else 0)
