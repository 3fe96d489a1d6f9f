#!/usr/bin/env -S python3 -B
"""shellcheck.py: shellcheck on each shell script of the project, with what it sources; see known.py."""
import collections
import functools
import re
import subprocess
import sys

import known

SOURCED = re.compile(r"^\s*(?:\.|source) .*?([\w.-]+\.sh)\b", re.MULTILINE)
VERSION = subprocess.run(["shellcheck", "--version"], check=True, stdout=subprocess.PIPE).stdout


def scripts():
    yield known.SOURCE / ".ci" / "run"
    for path in sorted(known.SOURCE.rglob("*.sh")):
        if not path.is_relative_to(known.SOURCE / "build"):
            yield path


BY_NAME = collections.defaultdict(list)  # there may be several of a name
for script in scripts():
    BY_NAME[script.name].append(script)


@functools.lru_cache(maxsize=None)
def read_with(path):
    """The script and, after it, all that it sources."""
    out = [path]
    for other in out:
        for name in SOURCED.findall(other.read_text()):
            out += [script for script in BY_NAME[name] if script not in out]
    return tuple(out)


def key_of(path):
    # Its place decides what SCRIPTDIR means.
    place = str(path.relative_to(known.SOURCE)).encode()
    return [VERSION, place, known.hash_of(known.SOURCE / ".shellcheckrc"), *map(known.hash_of, read_with(path))]


def complaint_about(path):
    done = subprocess.run(["shellcheck", "-x", "-P", "SCRIPTDIR", "--", path.relative_to(known.SOURCE)], text=True,
                          cwd=known.SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if done.returncode == 0 else done.stdout or f"shellcheck: status {done.returncode} for {path}\n"


if __name__ == "__main__":
    sys.exit(known.check("shellcheck", list(scripts()), key_of, complaint_about, "--all" in sys.argv[1:]))
