#!/usr/bin/env bash
# What dlock costs, next to flock(1) and others doing the same: a table for each backend.
#   tests/bench.sh [BACKEND]...     file redis zookeeper mysql; all of them if none is named
# With BENCH_STRICT=1 in the environment a target that is missed makes it fail.  DLOCK is the program
# to measure (build/default/src/dlock), BENCH_DIR where locks and servers have their files ($TMPDIR).
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
dlock=$(realpath -- "${DLOCK:-$source_dir/build/default/src/dlock}")
# shellcheck disable=SC2034  # for the scripts
rounds=60
backends=("$@")
((${#backends[@]})) || backends=(file redis zookeeper mysql)
for backend in "${backends[@]}"; do
  [[ $backend == @(file|redis|zookeeper|mysql) ]] || {
    echo "bench.sh: there is no benchmark of $backend" >&2
    exit 64
  }
done

for tool in flock hyperfine "${CXX:-c++}"; do
  command -v "$tool" >/dev/null || {
    echo "bench.sh: $tool is not installed (apt-get install util-linux hyperfine g++)" >&2
    exit 1
  }
done
[[ -x $dlock ]] || {
  echo "bench.sh: there is no $dlock: build it first, or say DLOCK=..." >&2
  exit 1
}

tmp=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/dlock-bench.XXXXXX")
cleanup() {
  local pids
  mapfile -t pids < <(jobs -pr)
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf -- "$tmp"
}
trap cleanup EXIT

for name in "${!DLOCK_@}"; do unset "$name"; done
mkdir -m 0700 "$tmp/locks"
export DLOCK_BACKEND=file://$tmp/locks HOME=$tmp

# shellcheck source=tests/bench/common.sh
. "$source_dir/tests/bench/common.sh"
for backend in "${backends[@]}"; do
  # shellcheck disable=SC1090  # file.sh, redis.sh and the others
  . "$source_dir/tests/bench/$backend.sh"
done

if [[ ${BENCH_STRICT-} == 1 ]]; then exit "${missed:?}"; fi
