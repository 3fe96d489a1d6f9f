"""Types into an interactive shell on a terminal: terminal.py STATUS FIRST SHELL... -- NAME...

STATUS is the shell's variable for the last status, FIRST the command that it runs first.  Then, for each beginning of
the NAME of a profile, `dlock run -b NAME` is typed with a TAB, and must succeed.
"""
import os, pty, select, sys

status, first, *shell = sys.argv[1:sys.argv.index('--')]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(PS1='', TERM='dumb')
    os.execvp(shell[0], shell)
said = b''
def until(text):
    global said
    while text not in said:
        if not select.select([terminal], [], [], 30)[0]:
            sys.exit(f'no {text} in {said}')
        said += os.read(terminal, 65536)
    said = b''
def enter(text):
    os.write(terminal, text.encode() + b'\r')
enter(f'{first}; echo READ""Y={status}')
until(b'READY=0')
for typed in sys.argv[sys.argv.index('--') + 1:]:
    enter(f'dlock run -n -k job -b {typed}\t -- true; echo EN""DED={status}')
    until(b'ENDED=0')
