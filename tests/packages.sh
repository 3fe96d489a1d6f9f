#!/usr/bin/env bash
# What cpack makes of a build directory: the same twice, with these names, dependencies and files, and right for lintian.
# Usage: tests/packages.sh BUILD_DIRECTORY
set -euo pipefail

for tool in dpkg-shlibdeps file lintian; do
  command -v "$tool" >/dev/null || {
    echo "$tool is not installed"
    exit 125
  }
done

build_dir=$(cd "$1" && pwd -P)
tmp=$(mktemp -d)
trap 'rm -rf -- "$tmp"' EXIT
cd "$tmp"
export LC_ALL=C.UTF-8

# expect WHAT PATTERN ACTUAL: ends the script unless the pattern matches.
expect() {
  # shellcheck disable=SC2053  # a pattern
  [[ $3 == $2 ]] || {
    printf '%s: expected %s, but it is\n%s\n' "$1" "$2" "$3"
    exit 1
  }
}

umask 022
for time_zone in UTC Asia/Tokyo; do
  TZ=$time_zone cpack --config "$build_dir/CPackConfig.cmake" -B "$tmp/$time_zone" >log 2>&1 || {
    cat log
    exit 1
  }
  rm -r "$time_zone/_CPack_Packages"
done
diff -r UTC Asia/Tokyo
mv UTC/* .

version=$("$build_dir/src/dlock" version | sed -n '1s/^dlock \([0-9.]*[0-9]\).*/\1/p')
deb=$(echo ./*.deb)
expect "name of the package" "./dlock_$version-1~*[0-9]_$(dpkg --print-architecture).deb" "$deb"
glibc=$(objdump -T "$build_dir/src/dlock" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
tarball=dlock-$version-linux-$(uname -m)-glibc${glibc#GLIBC_}
expect "name of the tarball" "$tarball.tar.gz" "$(echo ./*.tar.gz | cut -c 3-)"

expect Depends 'libc6 (>= +([0-9.]))' "$(dpkg-deb -f "$deb" Depends)"
expect Recommends '@(libmariadb|libmysqlclient)+([a-z0-9]), libpq+([0-9]), libssl+([a-z0-9])' "$(dpkg-deb -f "$deb" Recommends)"
lintian --allow-root --fail-on error,warning "$deb"

files='bin/dlock
lib/tmpfiles.d/dlock.conf
share/bash-completion/completions/dlock
share/doc/dlock/changelog.gz
share/doc/dlock/copyright
share/fish/vendor_completions.d/dlock.fish
share/man/PAGES'
# files_of PREFIX: reads what tar -tv prints; prints the files below PREFIX, all compressed pages as one.
files_of() { sed -En "s|^-.* $1||; T; s|^(share/man)/man[157]/[^/]+[.][157][.]gz$|\1/PAGES|; p" | sort -u; }
expect "list of files in the package that are not root's" '' "$(dpkg-deb -c "$deb" | grep -v ' root/root ')"
expect "list of files in the tarball that are not root's" '' "$(tar -tzvf "$tarball.tar.gz" | grep -v ' 0/0 ')"
expect "files of the package" "$(printf '%s\n' "$files" share/doc/dlock/changelog.Debian.gz \
  share/zsh/vendor-completions/_dlock | sort)" "$(dpkg-deb -c "$deb" | files_of ./usr/)"
expect "files of the tarball" "$(printf '%s\n' "$files" share/doc/dlock/Apache-2.0 \
  share/zsh/site-functions/_dlock | sort)" "$(tar -tzvf "$tarball.tar.gz" | files_of "$tarball/")"
