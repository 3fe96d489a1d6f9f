# shellcheck shell=bash
# For the tests of the manual's recipes.  After lib.sh and, if a recipe names "prod", redis.sh:
#   . "$(dirname "$0")/recipe.sh"
# goes to $tmp, where "dlock" is in the PATH, as ./bin/dlock.
: "${tmp:?lib.sh comes first}"
cd "$tmp" || exit
mkdir bin
ln -s "$DLOCK" bin/dlock
export PATH=$tmp/bin:$PATH

# recipe NAME: prints the example of the manual that stands behind `.\" recipe: NAME`.
recipe() {
  awk -v name="recipe: $1" '
    wanted && /^\.Ed/ { exit }
    wanted && !/^\./ { sub(/^\\&/, ""); gsub(/\\e/, "\\"); print; found = 1 }
    $2 " " $3 == name { wanted = 1 }
    END { exit !found }' "$TEST_SOURCE"/man/*.[157] || fail "the manual has no recipe $1"
}

# write_recipes NAME...: writes each to a file of its name.
write_recipes() {
  local name
  for name; do recipe "$name" >"$tmp/$name"; done
}

# prod_is_redis: the profile of the recipes is a server of this test, with a user and a password file, for all whose
# HOME is the present one.
prod_is_redis() {
  start_redis prod
  rcli prod ACL SETUSER locks on '>secret' '~*' '&*' +@all >/dev/null
  mkdir -p "$HOME/.config/dlock"
  # shellcheck disable=SC2154  # redis_url is of redis.sh
  (
    umask 077
    echo secret >"$HOME/redis.password"
    recipe config | sed "s,redis-1:6379,${redis_url[prod]#redis://},; s,/etc/dlock/redis.password,$HOME/redis.password," \
      >"$HOME/.config/dlock/config.json"
  )
}

# executable FILE: makes it from standard input.
executable() {
  cat >"$1"
  chmod +x "$1"
}
