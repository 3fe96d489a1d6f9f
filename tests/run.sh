#!/usr/bin/env bash
# Builds dlock and runs the tests.  Arguments go to ctest: tests/run.sh -R '^cli\.'
# With "soak" as the first one: the tests that take long, and no others.
# A test whose tool or server is missing is skipped; with CI set in the environment, that is a failure.
set -euo pipefail

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=cmake/packages.sh
. "$source_dir/cmake/packages.sh"
# shellcheck source=tests/run_tests.sh
. "$source_dir/tests/run_tests.sh"

which=(-LE soak)
case ${1-} in
  -h | --help)
    echo "Usage: tests/run.sh [soak] [CTEST OPTIONS]   e.g. tests/run.sh -R '^cli\.'"
    exit 0
    ;;
  soak)
    which=(-L soak)
    shift
    ;;
esac

if ! install_packages "${build_packages[@]}" "${test_packages[@]}"; then
  [[ -z ${CI-} ]] || exit 1
  note "going on with what is needed to build"
  ensure_packages "${build_packages[@]}" libgtest-dev liblua5.1-0-dev
fi

# install_peers: the lock libraries that tests/peers names, from npm, into build/peers; does nothing
# if they are there.  Without them the tests that need them are skipped.
install_peers() {
  local from=$source_dir/tests/peers to=$source_dir/build/peers new=$source_dir/build/peers.new
  if [[ -d $to/node_modules ]] && cmp -s "$from/package.json" "$to/package.json" &&
    cmp -s "$from/package-lock.json" "$to/package-lock.json"; then
    return 0
  fi
  if ! command -v npm >/dev/null; then
    note "npm is not installed; going on without the packages of tests/peers"
    return 0
  fi
  note "installing the packages of tests/peers"
  rm -rf -- "$new"
  mkdir -p "$new"
  cp -- "$from/package.json" "$from/package-lock.json" "$new"
  # From whatever registry npm is configured to use; the lock file names none.
  if (cd "$new" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error); then
    rm -rf -- "$to"
    mv -- "$new" "$to"
    if ((EUID == 0)); then chown -Rh --reference="$source_dir" "$to"; fi
  else
    note "npm could not install them, for the reason that it gives above; going on without"
    rm -rf -- "$new"
  fi
}

build_dir=$source_dir/build/default
build_directory_for_owner "$source_dir" "$build_dir"
install_peers

cd "$source_dir"
# Where all is compiled at once, several sources are read as one file: it takes half the time.
cmake --preset default -D CMAKE_UNITY_BUILD="${CI:+ON}"
cmake --build --preset default --parallel "$(nproc)"

run_tests "$build_dir" "${which[@]}" "$@"
