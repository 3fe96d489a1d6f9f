"""forbid.py CALL ERROR COMMAND [ARG...]: runs the command; a system call of it fails with this error.

CALL is socket:1 for a call whose first argument is 1, or inotify_init1 for any.  A seccomp filter, as service managers
install one: it holds for all that the command starts.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"socket": 41, "inotify_init1": 294},
    "aarch64": {"socket": 198, "inotify_init1": 26},
}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000

name, _, argument = sys.argv[1].partition(":")
error = getattr(errno, sys.argv[2])
if platform.machine() not in NUMBERS:
    sys.exit(f"no system call numbers for {platform.machine()}")
steps = [(LOAD, 0, 0, 0), (EQUAL, 0, 3 if argument else 1, NUMBERS[platform.machine()][name])]
if argument:
    steps += [(LOAD, 0, 0, 16), (EQUAL, 0, 1, int(argument))]
steps += [(RETURN, 0, 0, FAIL | error), (RETURN, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filters = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
for call in (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filters, 0, 0):
    if libc.prctl(*(ctypes.c_char_p(part) if isinstance(part, bytes) else ctypes.c_ulong(part) for part in call)):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[3], sys.argv[3:])
