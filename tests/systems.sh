#!/usr/bin/env bash
# Tries dlock on another release of Debian or Ubuntu: builds, installs and runs it in a chroot.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: tests/systems.sh RELEASE [--tests | COMMAND...]
       e.g. tests/systems.sh trixie --tests; tests/systems.sh noble tests/run.sh -R '^unit\.'

Makes a minimal system of RELEASE (Debian: bookworm, trixie, sid; Ubuntu: noble), copies the source
tree into it, and runs ./install.sh and a job under a lock there. It makes the packages, and installs,
tries and removes each in a second minimal system. Then it runs the unit and contract tests (--tests),
or COMMAND in the source tree. Must be run as root.

The system has its own processes and mounts. They end with this script, even if it is killed.
The packages come from the mirror that apt uses on this machine, else from debootstrap's default
mirror; set MIRROR to use another one. The bare system, the downloaded packages and what was compiled
(by ccache) are kept in ${XDG_CACHE_HOME:-~/.cache}/dlock/systems. Remove that directory to start afresh.
TEXT
}

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=cmake/packages.sh
. "$source_dir/cmake/packages.sh"

case ${1-} in
  -h | --help)
    usage
    exit 0
    ;;
  '' | *[!a-z]*)
    usage >&2
    exit 64
    ;;
esac
release=$1
((EUID == 0)) || die "only root can make a chroot; run this as root"
caches=${XDG_CACHE_HOME:-$HOME/.cache}/dlock/systems
root=$caches/$release.root # the system, while this script runs

# The outer script has no mounts, and the inner one dies with it: setpriv makes the kernel kill unshare
# when this shell is gone, and unshare the inner script.  That is the first process of its namespace,
# so the kernel then kills the others too, and with the last process the mounts are gone.
if [[ -z ${TEST_SYSTEMS_INNER-} ]]; then
  ensure_packages debootstrap git gpgv util-linux
  mkdir -p "$caches"
  exec 9>"$root.lock" # every process of this run holds it
  flock --nonblock 9 || die "tests/systems.sh $release is already running"
  rm -rf --one-file-system -- "$root"
  status=0
  TEST_SYSTEMS_INNER=1 setpriv --pdeathsig KILL \
    unshare --mount --pid --fork --kill-child --propagation private "$0" "$@" || status=$?
  rm -rf --one-file-system -- "$root"
  exit "$status"
fi
trap 'exit 130' INT # the first process of a namespace ignores signals that it has no trap for
trap 'exit 143' TERM

shift
[[ ${1-} != --tests ]] || set -- env CI=1 tests/run.sh -R '^(unit|contract)\.'

script=$(readlink -f "/usr/share/debootstrap/scripts/$release")
# debootstrap may be older than the release: then take it for one of Ubuntu.
[[ -e $script ]] || script=/usr/share/debootstrap/scripts/gutsy
if [[ $script == */gutsy ]]; then distribution=Ubuntu; else distribution=Debian; fi
packages=$caches/$release.packages
compiled=$caches/$release.ccache
bare=$caches/$release.tar

# fetch_ubuntu_keys: writes Ubuntu's keys to $keys.  They are in a package of Debian 13, but not of
# Debian 12, so apt gets a list of sources of its own here; it checks the package as always.
fetch_ubuntu_keys() {
  local dir option options=()
  dir=$(mktemp -d)
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  printf 'deb [signed-by=%s] %s trixie main\n' /usr/share/keyrings/debian-archive-keyring.gpg \
    "$(mirror_of Debian)" >"$dir/sources"
  for option in Dir::Etc::SourceList="$dir/sources" Dir::Etc::SourceParts=/dev/null \
    Dir::State::Lists="$dir/lists" Dir::Cache="$dir/cache" APT::Sandbox::User=root; do
    options+=(-o "$option")
  done
  (cd "$dir" && apt-get -q "${options[@]}" update && apt-get -q "${options[@]}" download ubuntu-keyring)
  dpkg-deb -x "$dir"/*.deb "$dir"
  cp -- "$dir/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$keys"
  rm -rf -- "$dir"
}

# make_bare_system: the system that install.sh finds, as the file $bare.
make_bare_system() {
  local components=main keys=/usr/share/keyrings/debian-archive-keyring.gpg
  if [[ $distribution == Ubuntu ]]; then
    components=main,universe keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    [[ -e $keys ]] || keys=$caches/ubuntu-archive-keyring.gpg
    [[ -e $keys ]] || fetch_ubuntu_keys
  fi
  note "making a bare system of $distribution $release"
  mkdir -p "$root"
  debootstrap --variant=minbase --include=ccache --components="$components" --cache-dir="$packages" \
    --force-check-gpg --keyring="$keys" \
    "$release" "$root" "${MIRROR:-$(mirror_of "$distribution")}" "$script"
  if [[ $distribution == Ubuntu ]]; then # its fixes are a suite of their own
    sed -i "s/\(.*\) $release \(.*\)/&\n\1 $release-updates \2/" "$root/etc/apt/sources.list"
  fi
  tar -C "$root" --one-file-system -cf "$bare.new" .
  mv -- "$bare.new" "$bare"
}

# in_system COMMAND...: runs it in the copy of the source tree.
in_system() {
  chroot "$root" env -i -C /dlock CMAKE_CXX_COMPILER_LAUNCHER=ccache HOME=/root LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" "$@"
}

mkdir -p "$packages" "$compiled"
# Downloads in the system need what they need here.
eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
[[ -z ${http_proxy-} ]] || export http_proxy
if [[ ! -e $bare ]]; then
  make_bare_system
else
  mkdir -p "$root"
  tar -C "$root" -xf "$bare"
fi
apt-config dump | grep -E '^Acquire::(https?::|Retries|Check-)' >"$root/etc/apt/apt.conf.d/50host" || true
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$packages" "$root/var/cache/apt/archives"
mkdir -p "$root/root/.cache/ccache"
mount --bind "$compiled" "$root/root/.cache/ccache"

note "copying the source tree"
mkdir "$root/dlock"
git -C "$source_dir" ls-files -z --cached --others --exclude-standard --deduplicate |
  tar -C "$source_dir" --null --files-from - --ignore-failed-read -c | tar -C "$root/dlock" --no-same-owner -x

# expect STATUS PATTERN COMMAND...: ends the script unless the command has this status and its output
# matches the pattern.
expect() {
  local status=0 output
  output=$(in_system "${@:3}") || status=$?
  # shellcheck disable=SC2053  # a pattern
  [[ $status == "$1" && $output == $2 ]] ||
    die "$(printf '%q ' "${@:3}") ended with status $status and printed:"$'\n'"$output"
}

in_system ./install.sh
note "running jobs"
expect 0 hello dlock run --key hello -- echo hello
expect 3 '' dlock run --key job -- sh -c 'exit 3'
expect 0 'job: held*' dlock run --key job -- dlock show job
for backend in file redis redlock zookeeper mysql; do
  expect 0 "*$backend +( )yes*" dlock backends
done
expect 0 '' test -s /usr/local/share/man/man1/dlock.1
expect 0 '' bash -n /usr/local/share/bash-completion/completions/dlock

note "making packages"
in_system bash -c '. cmake/packages.sh && ensure_packages "${package_packages[@]}"'
in_system cmake --preset package
in_system cmake --build --preset package --parallel "$(nproc)"
in_system tests/packages.sh build/package

# A system without anything that dlock was built with.
clean=$root/clean
mkdir "$clean"
tar -C "$clean" -xf "$bare"
mount -t proc proc "$clean/proc"
cp "$root"/dlock/build/package/dlock[-_]* "$clean/"
files_in_clean() { (cd "$clean" && find . -path ./proc -prune -o -print | sort); }
files_before=$(files_in_clean)

# try_package DLOCK REMOVE...: runs jobs, and REMOVE, after which nothing may be left.
try_package() {
  expect 0 hello chroot /clean "$1" run --key hello -- echo hello
  expect 0 'job: held*' chroot /clean "$1" run --key job -- "$1" show job
  expect 0 '' chroot /clean "$1" list
  in_system chroot /clean "${@:2}"
  diff <(echo "$files_before") <(files_in_clean) || die "not all of these files were there before, or are there now"
}
note "trying packages"
in_system chroot /clean sh -c 'dpkg -i /dlock_*.deb'
try_package dlock dpkg --purge dlock
in_system chroot /clean sh -c 'mkdir /opt/dlock && tar -C /opt/dlock --strip-components=1 -xzf /dlock-*.tar.gz'
try_package /opt/dlock/bin/dlock rm -r /opt/dlock /run/dlock

if (($#)); then
  note "running $*"
  in_system "$@"
fi
note "all of it works on $distribution $release"
