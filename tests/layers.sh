#!/usr/bin/env bash
# No file includes what its folder may not know (src/README.md has the arrows).
# Usage: tests/layers.sh [SOURCE]
set -euo pipefail

cd "${1:-$(dirname "$0")/..}/src"
broken=0

# forbid FOLDER PATTERN WHY: no file of the folder includes a header that matches.
forbid() {
  local hits
  hits=$(grep -rnE --include='*.[ch]pp' "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$2" "$1" || true)
  [[ -z $hits ]] || {
    printf '%s\n  ^ %s\n' "$hits" "$3"
    broken=1
  }
}

forbid util '(core|process|reentry|engine|backends|cli)/' "util knows nothing but the system"
forbid core '(process|reentry|engine|backends|cli)/' "core includes util and core only"
forbid process '(reentry|engine|backends|cli)/' "process knows core and util only"
forbid reentry '(engine|backends|cli)/' "re-entry knows backends by core/backend.hpp, and not the engine"
forbid engine '(backends|cli)/' "the engine knows backends by core/backend.hpp only"
forbid cli 'backends/' "the command line knows backends by their rows only"
forbid backends '(process|reentry|engine|cli)/' "a backend includes core and util only"
forbid . '\.\.?/' "includes start at src/"

for folder in backends/*/; do
  name=$(basename "$folder")
  for other in backends/*/; do
    [[ $other == "$folder" ]] && continue
    [[ $name/$other =~ ^(mysql|postgres)/backends/sql/ ]] && continue # made for these two
    forbid "$folder" "$other" "$name includes another backend"
  done
  forbid "$folder" 'backends/registry' "a backend does not know the table it stands in"
done

# Client libraries stay in the folder of their backend.
while read -r library owner; do
  hits=$(grep -rnE --include='*.[ch]pp' "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]${library}[/>\"]" . |
    grep -v "^\./backends/$owner/" || true)
  [[ -z $hits ]] || {
    printf '%s\n  ^ %s is for src/backends/%s only\n' "$hits" "$library" "$owner"
    broken=1
  }
done <<'END'
hiredis redis
zookeeper zookeeper
mysql mysql
mariadb mysql
libpq-fe.h postgres
END

exit "$broken"
