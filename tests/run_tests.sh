# shellcheck shell=bash
# How the tests of a build directory are run.  Sourced by tests/run.sh and .ci/run.

# run_tests BUILD_DIR [CTEST OPTIONS]...: runs them, several at once.  With CI set in the environment a test
# that is skipped is a failure, and one that fails is run again alone: see again.py.
run_tests() {
  local dir=$1 status=0 skipped
  shift
  rm -f -- "$dir/ctest.log" "$dir/ctest.xml"
  # Most of them wait most of the time.
  ctest --test-dir "$dir" --output-on-failure --no-tests=error --parallel $(($(nproc) * 5)) \
    --output-log "$dir/ctest.log" --output-junit "$dir/ctest.xml" "$@" || status=$?
  [[ -n ${CI-} ]] || return "$status"

  mapfile -t skipped < <(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (Skipped)$/\1/p' "$dir/ctest.log")
  if ((${#skipped[@]})); then
    note "with CI set no test may be skipped, but these were: ${skipped[*]}"
    return 1
  fi
  ((status)) || return 0
  [[ -e $dir/ctest.xml ]] || return "$status" # ctest itself was ended
  "${BASH_SOURCE[0]%/*}/again.py" "$dir" "$dir/ctest.xml"
}
