#!/usr/bin/env python3
"""again.py BUILD_DIR RESULTS: runs the tests that failed again, each alone.

RESULTS is what `ctest --output-junit` wrote about the tests of BUILD_DIR.  A test that fails once more in three
runs has failed.  A test that passes three times is unsteady: its first output is kept in BUILD_DIR/unsteady/, and
the run goes on.  What happens seldom is no excuse for these, which are not run again:
- a promise of dlock was broken: two holders, a fencing token that did not grow, something left behind, a lock
  that stays locked;
- a sanitizer found something, or the program under test crashed;
- a test was not run at all.

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
# What the scripts print, and the words in the conditions of GoogleTest that look for the same.
BROKEN = re.compile(r"OVERLAP|STALE|OUTLIVED|LEFT BEHIND|NOBODY GOT IN"
                    r"|Sanitizer|runtime error:|SIGSEGV|SIGABRT|Segmentation fault|terminate called|Assertion(?!Result|FailureMessage)")
CONDITION = re.compile(r"[Ff]ence|(is|are)_left|is_empty|left\.empty|rows|sessions|children|queue|waiters|holders"
                       r"|most\b|exclusive|is_free|is_held_by|node_count")


def reason_not_to_repeat(output):
    """The line that tells of a broken promise or a crash; None if there is none."""
    in_failure = False
    for line in output.splitlines():
        if BROKEN.search(line):
            return line.strip()
        # GoogleTest: from "file.cpp:1: Failure" to the next test or message of the program.
        if line.endswith(": Failure"):
            in_failure = True
        elif line.startswith(("[", "dlock:")):
            in_failure = False
        elif in_failure and CONDITION.search(line) and "new fatal failures" not in line:  # which it names above
            return line.strip()
    return None


def passes_alone(build, name):
    for _ in range(RUNS):
        done = subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error",
                               "-R", f"^{re.escape(name)}$"], stdout=subprocess.PIPE, text=True)
        print(done.stdout, flush=True)
        if done.returncode or "Skipped" in done.stdout or "Not Run" in done.stdout:
            return False
    return True


def keep(build, name, output):
    path = os.path.join(build, "unsteady", name.replace("/", "_"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(output)
    return path


def main(build, results):
    cases = list(xml.etree.ElementTree.parse(results).getroot().iter("testcase"))
    not_run = [case.get("name") for case in cases if case.get("status") not in ("run", "fail")]
    failed = {case.get("name"): case.findtext("system-out") or ""
              for case in cases if case.get("status") == "fail"}
    if not_run:
        print(f"again.py: these were not run: {' '.join(not_run)}")
        return 1
    if not failed:
        print("again.py: ctest failed, but none of the tests")
        return 1
    if len(failed) > MOST:
        print(f"again.py: {len(failed)} tests failed; these are too many to run them again")
        return 1

    status = 0
    for name, output in failed.items():
        if reason := reason_not_to_repeat(output):
            print(f"again.py: {name} is not run again, because of this line: {reason}")
            status = 1
            continue
        print(f"again.py: {name} failed beside other tests; {RUNS} runs alone", flush=True)
        if passes_alone(build, name):
            print(f"again.py: {name} is unsteady; its first output is in {keep(build, name, output)}")
        else:
            print(f"again.py: {name} fails alone, too")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
