#!/usr/bin/env bash
# tests/fuzz.sh [SECONDS [NAME...]]: libFuzzer (clang) against what reads untrusted input, each harness for so
# long (600).  It begins with the corpus in tests/fuzz/NAME.tar.xz, and adds what it finds that is new.  What it
# breaks with stays in build/fuzz.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_dir"
seconds=${1-600}
shift || true
names=("$@")
((${#names[@]})) || names=(replies records urls)

cmake -S . -B build/fuzz -G Ninja -D CMAKE_CXX_COMPILER=clang++ -D CMAKE_BUILD_TYPE=RelWithDebInfo \
  -D DLOCK_TESTS=OFF -D DLOCK_FUZZ=ON -D DLOCK_SANITIZE=address,undefined,fuzzer-no-link
cmake --build build/fuzz --parallel "$(nproc)" --target "${names[@]/#/fuzz-}"
for name in "${names[@]}"; do
  (
    cd build/fuzz
    rm -rf "corpus-$name" "all-$name"
    mkdir "corpus-$name" "all-$name"
    tar -xf "$source_dir/tests/fuzz/$name.tar.xz" -C "corpus-$name"
    UBSAN_OPTIONS=halt_on_error=1 "tests/fuzz/fuzz-$name" -max_total_time="$seconds" -timeout=5 \
      -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="broken-$name-" "corpus-$name"
    # Only what reaches something new, and of that the shortest.
    "tests/fuzz/fuzz-$name" -merge=1 "all-$name" "corpus-$name" 2>/dev/null
    tar --sort=name --owner=0 --group=0 --mtime=@0 -cJf "$source_dir/tests/fuzz/$name.tar.xz" -C "all-$name" .
  )
done
