# shellcheck shell=bash
# Another time for a server: see tests/support/clock_shim.cpp.  After lib.sh:
#   . "$(dirname "$0")/clock.sh"
#
#   ${clock_file[NAME]}   of new_clock; a process goes by it that has in its environment
#                         "CLOCK_SHIM=${clock_file[NAME]}" "LD_PRELOAD=$TEST_CLOCK_SHIM"
: "${tmp:?lib.sh comes first}"
declare -gA clock_file=() clock_state=()

# new_clock NAME: the right time, so far.  Servers of that name that are started after this go by it.
new_clock() {
  [[ -r $TEST_CLOCK_SHIM ]] || fail "there is no $TEST_CLOCK_SHIM"
  clock_file[$1]=$tmp/clock-$1
  clock_state[$1]='0 0 0 0 0'
  lib_set_clock "$1" 0 0 0
}

# jump_clock NAME MS [MONOTONIC_MS]: sets the wall clock forward, or back; and the one nobody can set.
jump_clock() {
  local state
  read -ra state <<<"${clock_state[$1]}"
  lib_set_clock "$1" "$2" "${3:-0}" "${state[3]}"
}

# drift_clock NAME PPM: from now on all its clocks go faster by so many millionths.  0: right again, but
# what was gained stays.
drift_clock() { lib_set_clock "$1" 0 0 "$2"; }

# Adds to both clocks what is given and what was gained so far, and sets the rate.
lib_set_clock() {
  local name=$1 version wall monotonic ppm since uptime now gained
  read -r version wall monotonic ppm since <<<"${clock_state[$name]}"
  read -r uptime _ </proc/uptime  # CLOCK_BOOTTIME
  now=$((10#${uptime/./} * 10000000))
  # shellcheck disable=SC2017  # the product would not fit
  gained=$(((now - since) / 1000 * ppm / 1000))
  version=$((version + 1))
  wall=$((wall + gained + $2 * 1000000))
  monotonic=$((monotonic + gained + $3 * 1000000))
  clock_state[$name]="$version $wall $monotonic $4 $now"
  # In place: it is mapped.
  printf '%010u %+020d %+020d %+020d %+020d %010u\n' \
    "$version" "$wall" "$monotonic" "$4" "$now" "$version" 1<>"${clock_file[$name]}"
}
