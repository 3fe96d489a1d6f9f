#!/usr/bin/env bash
# Builds dlock and installs it, with the packages that this takes.
set -euo pipefail

usage() {
  cat <<'END'
Usage: ./install.sh [--prefix DIR]
       PREFIX=DIR ./install.sh

Installs what is needed to build dlock (Debian and Ubuntu packages), builds it in build/install, and
installs the program, its manual pages and its shell completions below DIR, by default /usr/local (for
fish in /etc/fish/completions then: below /usr/local it does not look).
Uses sudo for the packages if some are missing, and for DIR if you cannot write there.
END
}

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=cmake/packages.sh
. "$source_dir/cmake/packages.sh"

prefix=${PREFIX:-/usr/local}
while (($#)); do
  case $1 in
    --prefix)
      (($# > 1)) || die "--prefix needs a directory"
      prefix=$2
      shift
      ;;
    --prefix=*) prefix=${1#*=} ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 64
      ;;
  esac
  shift
done
[[ -n $prefix ]] || die "the prefix is empty"
# The shell does not expand --prefix=~/.local.
[[ $prefix != \~/* ]] || prefix=$HOME/${prefix#\~/}
prefix=$(realpath -ms -- "$prefix")

# can_write DIR: we may write there, or create it.
can_write() {
  local dir=$1
  while [[ ! -e $dir ]]; do dir=$(dirname "$dir"); done
  [[ -d $dir && -w $dir ]]
}

# As in cmake/install.cmake.
zsh_dir=$prefix/share/zsh/site-functions
[[ $prefix != /usr ]] || zsh_dir=/usr/share/zsh/vendor-completions
fish_dir=$prefix/share/fish/vendor_completions.d
[[ $prefix != /usr/local ]] || fish_dir=/etc/fish/completions

# Before anything is built: will there be a place for it?
as_installer=()
for dir in "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
  "$prefix/lib/tmpfiles.d" "$zsh_dir" "$fish_dir"; do
  can_write "$dir" || as_installer=(as_root)
done
if ((${#as_installer[@]} && EUID != 0)) && ! command -v sudo >/dev/null; then
  die "you cannot write to $prefix, and there is no sudo: run this as root, or choose another" \
    "place, e.g. ./install.sh --prefix ~/.local"
fi

ensure_packages "${build_packages[@]}"

umask 022
build_dir=$source_dir/build/install
build_directory_for_owner "$source_dir" "$build_dir"

note "building"
cmake -S "$source_dir" -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_INSTALL_PREFIX="$prefix" -DDLOCK_TESTS=OFF ||
  die "cmake could not configure the build; its words are above"
cmake --build "$build_dir" --parallel "$(nproc)" || die "the build failed; see above"

# One that root wrote last time, through sudo, could not be written to by us.
rm -f "$build_dir/install_manifest.txt"
"${as_installer[@]}" "$(command -v cmake)" --install "$build_dir" || die "could not install to $prefix; see above"

version=$("$prefix/bin/dlock" version) || die "$prefix/bin/dlock was installed but does not run"
echo
echo "Installed $prefix/bin/dlock, its manual pages, and completions for bash, zsh and fish."
echo "$version"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) echo "$prefix/bin is not in your PATH." ;;
esac
