#!/usr/bin/env python3
"""again.py BUILD_DIR RESULTS: runs the tests that failed again, each alone.

RESULTS is what `ctest --output-junit` wrote about the tests of BUILD_DIR.  A test that fails once more in three
runs has failed.  A test that passes three times is unsteady: its first output is kept in BUILD_DIR/unsteady/, and
the run goes on.  A test that showed a broken promise of dlock (two holders, a fencing token that did not grow,
something left behind) has failed, and is not run again: that it happens seldom excuses nothing.

Exits with 1 if a test has failed.
"""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

RUNS = 3
# So many at once are not bad luck.
MOST = 8
# What tests print when a promise is broken: the scripts in words, GoogleTest by the condition that did not hold.
BROKEN = re.compile(r"OVERLAP|STALE|LEFT BEHIND"
                    r"|(Expected|Value of|Which is): .*([Ff]ence|(is|are)_left|rows|children|\bmost\b|is_free_for)")


def broken_promise(output):
    return next((line.strip() for line in output.splitlines() if BROKEN.search(line)), None)


def passes_alone(build, name):
    for _ in range(RUNS):
        if subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error",
                           "-R", f"^{re.escape(name)}$"]).returncode:
            return False
    return True


def main(build, results):
    failed = {}
    for case in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        if case.get("status") == "fail":
            failed[case.get("name")] = case.findtext("system-out") or ""
    if len(failed) > MOST:
        print(f"again.py: {len(failed)} tests failed; these are too many to run them again")
        return 1

    status = 0
    for name, output in failed.items():
        if line := broken_promise(output):
            print(f"again.py: {name} shows a broken promise and is not run again: {line}")
            status = 1
            continue
        print(f"again.py: {name} failed beside other tests; {RUNS} runs alone", flush=True)
        if not passes_alone(build, name):
            print(f"again.py: {name} fails alone, too")
            status = 1
            continue
        kept = os.path.join(build, "unsteady", name.replace("/", "_"))
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with open(kept, "w", encoding="utf-8") as file:
            file.write(output)
        print(f"again.py: {name} is unsteady; its first output is in {kept}")
    # A run that failed for another reason than a failed test has failed.
    return status if failed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
