#!/usr/bin/env bash
# Builds dlock and runs every test.  Arguments go to ctest: tests/run.sh -R '^cli\.'
# A test whose tool or server is missing is skipped; with CI set in the environment, that is a failure.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=cmake/packages.sh
. "$source_dir/cmake/packages.sh"

case ${1-} in
  -h | --help)
    echo "Usage: tests/run.sh [CTEST OPTIONS]   e.g. tests/run.sh -R '^cli\.'"
    exit 0
    ;;
esac

if ! install_packages "${build_packages[@]}" "${test_packages[@]}"; then
  [[ -z ${CI-} ]] || exit 1
  note "going on with what is needed to build"
  ensure_packages "${build_packages[@]}" libgtest-dev
fi

build_dir=$source_dir/build/default
build_directory_for_owner "$source_dir" "$build_dir"

cd "$source_dir"
cmake --preset default
cmake --build --preset default --parallel "$(nproc)"

log=$build_dir/ctest.log
status=0
ctest --test-dir "$build_dir" --output-on-failure --no-tests=error --parallel "$(nproc)" \
  --output-log "$log" "$@" || status=$?

if [[ -n ${CI-} ]]; then
  mapfile -t skipped < <(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (Skipped)$/\1/p' "$log")
  if ((${#skipped[@]})); then
    note "with CI set no test may be skipped, but these were: ${skipped[*]}"
    ((status)) || status=1
  fi
fi
exit "$status"
