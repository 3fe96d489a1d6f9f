#!/usr/bin/env bash
# ctest: cost 10
# A user can hold more locks than one process may have open files: what dlock keeps open for a lock counts for nobody else.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
shared_directory everybody

ulimit -S -n 40
export DLOCK=$alice
for ((i = 0; i < 30; ++i)); do holder "h$i" -k "job$i"; done
for ((i = 0; i < 20; ++i)); do holder "s$i" -k slots --slots 20; done
assert_equal 50 "$("$DLOCK" list -q -o pid | sed 1d | wc -l)" "holders in the list"
finish h{0..29} s{0..19}
