#!/usr/bin/env python3
"""tidy.py BUILD_DIR [--all]: clang-tidy on each file that BUILD_DIR/compile_commands.json names.

A file in which nothing was found is remembered by the hash of all that was read (its text and that of all headers,
the command, .clang-tidy, the version of clang-tidy) and not looked at again; with --all it is.  Exits with 1 if
something was found.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dlock" / "tidy"
# bugprone-suspicious-include: several sources are read as one file.
TIDY = ["clang-tidy", "--quiet", "--checks=-bugprone-suspicious-include", "--header-filter=/src/",
        "--extra-arg=-Wno-unknown-warning-option"]


def output_of(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


@functools.lru_cache(maxsize=None)
def hash_of(path):
    # A checkout elsewhere has the same text.
    return hashlib.sha256(pathlib.Path(path).read_bytes().replace(str(SOURCE).encode(), b"")).digest()


def what_is_read(entry, version):
    words = shlex.split(entry["command"])
    output = words.index("-o")
    del words[output:output + 2]
    rule = output_of([*words, "-M"], cwd=entry["directory"], text=True)
    files = rule.replace("\\\n", " ").split(":", 1)[1].split()
    known = " ".join([*TIDY, *words[1:]]).replace(str(SOURCE), "")
    return hashlib.sha256(b"\0".join([
        version, known.encode(), hash_of(SOURCE / ".clang-tidy"),
        *(hash_of(os.path.join(entry["directory"], file)) for file in files)])).hexdigest()


def is_clean(entry, build, version, anew):
    known = CACHE / what_is_read(entry, version)
    if known.exists() and not anew:
        known.touch()
        return True, ""
    done = subprocess.run([*TIDY, "-p", build, entry["file"]], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        known.touch()
    return done.returncode == 0, done.stdout


def main(build, *options):
    CACHE.mkdir(parents=True, exist_ok=True)
    entries = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    version = output_of(["clang-tidy", "--version"])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda entry: is_clean(entry, build, version, "--all" in options), entries))
    for clean, text in results:
        if not clean:
            print(text)
    return 0 if all(clean for clean, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
