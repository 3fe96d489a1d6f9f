#!/usr/bin/env -S python3 -B
"""tidy.py BUILD_DIR [--all]: clang-tidy on each file that BUILD_DIR/compile_commands.json names.

A file in which nothing was found is not looked at again, unless --all says so (known.py): what counts is its text and
that of all headers, the command, .clang-tidy, and the version of clang-tidy.  Exits with 1 if something was found.
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys

import known

# bugprone-suspicious-include: several sources are read as one file.
TIDY = ["clang-tidy", "--quiet", "--checks=-bugprone-suspicious-include", "--header-filter=/src/",
        "--extra-arg=-Wno-unknown-warning-option"]


def output_of(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


VERSION = output_of(["clang-tidy", "--version"])


def key_of(entry):
    words = shlex.split(entry["command"])
    output = words.index("-o")
    del words[output:output + 2]
    rule = output_of([*words, "-M"], cwd=entry["directory"], text=True)
    files = rule.replace("\\\n", " ").split(":", 1)[1].split()
    command = " ".join([*TIDY, *words[1:]]).replace(str(known.SOURCE), "")
    return [VERSION, command.encode(), known.hash_of(known.SOURCE / ".clang-tidy"),
            *(known.hash_of(os.path.join(entry["directory"], file)) for file in files)]


def main(build, *options):
    def complaint_about(entry):
        done = subprocess.run([*TIDY, "-p", build, entry["file"]], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return "" if done.returncode == 0 else done.stdout or f"{entry['file']}: clang-tidy: {done.returncode}\n"

    entries = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    return known.check("tidy", entries, key_of, complaint_about, "--all" in options)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
