# shellcheck shell=bash disable=SC2034  # the lists are for the scripts that source this
# What dlock needs from the distribution, and how it gets there.
# Sourced by install.sh, tests/run.sh and .ci/run; the only list of packages.  Needs bash only.

# To build the dlock that is installed.
build_packages=(
  cmake
  default-libmysqlclient-dev
  g++
  libcli11-dev
  libhiredis-dev
  libpq-dev
  libssl-dev
  libzookeeper-st-dev
  ninja-build
  nlohmann-json3-dev
)

# For cpack (package.cmake), and to check what it makes.
package_packages=(
  dpkg-dev
  file
  lintian
)

# To build and run the tests.
test_packages=(
  "${package_packages[@]}"
  bash-completion
  bsdutils
  default-jdk-headless
  fish
  galera-4
  jq
  libcurator-recipes-java
  libgtest-dev
  liblua5.1-0-dev
  man-db
  mandoc
  mariadb-client
  mariadb-server
  nodejs
  npm
  openssl
  postgresql
  procps
  psmisc
  python3
  python3-kazoo
  python3-redis
  python3-yaml
  redis-server
  redis-tools
  rsync
  strace
  tmux
  util-linux
  zookeeper
  zsh
)

# For the checks that only .ci/run makes.
check_packages=(
  ccache
  clang-format
  clang-tidy
  shellcheck
)

# For those of .ci/run soak.
soak_packages=(
  g++-multilib
)

# What shows that a package's content is there, wherever it came from: a command, or a header.
# A package that is not named here has a command of its own name.
declare -A packages_probe=(
  [bash-completion]=/usr/share/bash-completion/bash_completion
  [bsdutils]=script
  [default-jdk-headless]=javac
  [default-libmysqlclient-dev]='<mysql/mysql.h>'
  [dpkg-dev]=dpkg-buildflags
  [g++-multilib]=/usr/include/$(uname -m)-linux-gnu/gnu/stubs-32.h
  [libcli11-dev]='<CLI/CLI.hpp>'
  [libcurator-recipes-java]=/usr/share/java/curator-recipes.jar
  [libgtest-dev]='<gtest/gtest.h>'
  [libhiredis-dev]='<hiredis/hiredis.h>'
  [liblua5.1-0-dev]='<lua5.1/lua.hpp>'
  [libpq-dev]='<postgresql/libpq-fe.h>'
  [libssl-dev]='<openssl/ssl.h>'
  [libzookeeper-st-dev]=/usr/lib/$(uname -m)-linux-gnu/libzookeeper_st.a
  [man-db]=man
  [mariadb-client]=mariadb
  [mariadb-server]=mariadbd
  [ninja-build]=ninja
  [nlohmann-json3-dev]='<nlohmann/json.hpp>'
  [nodejs]=node
  [postgresql]=pg_ctlcluster
  [procps]=ps
  [psmisc]=killall
  [python3-kazoo]=/usr/lib/python3/dist-packages/kazoo
  [python3-redis]=/usr/lib/python3/dist-packages/redis
  [python3-yaml]=/usr/lib/python3/dist-packages/yaml
  [redis-tools]=redis-cli
  [util-linux]=flock
  [zookeeper]=/usr/share/java/zookeeper.jar
)

# note MESSAGE: tells the user what goes on.
note() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# die MESSAGE: says what is wrong and ends the script.
die() {
  note "$*"
  exit 1
}

# as_root COMMAND...: runs it as root, through sudo if need be; 1 if that is not possible.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    return 1
  fi
}

# package_present PACKAGE: dpkg has it, or what it contains is there without dpkg.
package_present() {
  local status probe=${packages_probe[$1]:-$1}
  if command -v dpkg-query >/dev/null; then
    # shellcheck disable=SC2016  # the ${} is dpkg-query's
    status=$(dpkg-query -W -f '${db:Status-Status} ' "$1" 2>/dev/null || true)
    [[ " $status" != *" installed "* ]] || return 0
  fi
  case $probe in
    \<*\>) echo "#include $probe" | "${CXX:-c++}" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null ;;
    /*) [[ -e $probe ]] ;;
    g++) command -v "${CXX:-c++}" >/dev/null ;;
    *) command -v "$probe" >/dev/null ;;
  esac
}

# missing_packages PACKAGE...: prints those that are not present, one per line.
missing_packages() {
  local package
  for package in "$@"; do
    package_present "$package" || printf '%s\n' "$package"
  done
}

# install_packages PACKAGE...: installs what is missing; without network or root if nothing is.
# When it cannot, it says why and what is missing, and returns 1.
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  if ! command -v apt-get >/dev/null || [[ ! -e /etc/debian_version ]]; then
    note "this is no Debian or Ubuntu, so nothing is installed by itself; please install what" \
      "these Debian packages contain and run this again: ${missing[*]}"
    return 1
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    note "packages are missing, and you are neither root nor is there sudo; please run as root:" \
      "apt-get install ${missing[*]}"
    return 1
  fi

  note "installing ${missing[*]}"
  # Another apt may be at work (unattended upgrades): wait for it.
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  # A source that cannot be reached need not be the one that has our packages.
  as_root "${apt[@]}" update || note "apt-get update failed; trying with the package lists there are"
  if ! as_root "${apt[@]}" install --no-install-recommends "${missing[@]}"; then
    mapfile -t missing < <(missing_packages "${missing[@]}")
    if ((${#missing[@]})); then
      note "these could not be installed, for the reason that apt-get gives above: ${missing[*]}"
      return 1
    fi
  fi
}

# ensure_packages PACKAGE...: installs what is missing, and ends the script when it cannot.
ensure_packages() { install_packages "$@" || exit 1; }

# mirror_of DISTRIBUTION: prints the mirror that apt uses; prints nothing if it uses none.
mirror_of() {
  # shellcheck disable=SC2016  # the $() is apt's
  apt-get indextargets --format '$(SITE)' "Origin: $1" "Label: $1" | sort -u | head -n 1
}

# build_directory_for_owner SOURCE DIR: prepares DIR (SOURCE/build/...) to be built in, and sees to
# it that what root builds in somebody's checkout is theirs at the end, so that they can go on in it.
build_directory_for_owner() {
  local source=$1 dir=$2
  mkdir -p "$dir" || die "cannot create $dir"
  if [[ ! -w $dir ]] || [[ -e $dir/CMakeCache.txt && ! -w $dir/CMakeCache.txt ]]; then
    die "$dir belongs to $(stat -c %U "$dir"), and you cannot write to it; remove it and try again"
  fi
  # A checkout that was copied or moved with its build directory has the old place in its cache.
  if [[ -e $dir/CMakeCache.txt ]] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$source" "$dir/CMakeCache.txt"; then
    rm -rf -- "$dir/CMakeCache.txt" "$dir/CMakeFiles"
  fi
  if ((EUID == 0)) && [[ $(stat -c %u "$source") != 0 ]]; then
    chown -h --reference="$source" "$source/build"
    # shellcheck disable=SC2064  # today's values
    trap "chown -Rh --reference=$(printf '%q ' "$source" "$dir")" EXIT
  fi
}
