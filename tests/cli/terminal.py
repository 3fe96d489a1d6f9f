"""Types into an interactive shell on a terminal: terminal.py SHELL... -- LINE...

Each LINE, in which ^I is a TAB, runs the dlock of completions.sh, which writes its words to ./words.  Prints these, a
line for each LINE.
"""
import os, pty, select, sys

split = sys.argv.index('--')
shell, lines = sys.argv[1:split], sys.argv[split + 1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(PS1='', TERM='dumb')
    os.execvp(shell[0], shell)
for line in ['dlock ready', *lines]:
    os.write(terminal, line.replace('^I', '\t').encode() + b'\r')
    said = b''
    while b'WORDS-WRITTEN' not in said:
        if not select.select([terminal], [], [], 30)[0]:
            sys.exit(f'{line}: dlock was not run, but: {said}')
        said += os.read(terminal, 65536)
    with open('words') as words:
        answer = words.read()
    if line != 'dlock ready':
        print(answer)
