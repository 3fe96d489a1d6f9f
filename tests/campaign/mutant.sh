#!/usr/bin/env bash
# A dlock that breaks a promise, for `campaign.py --self-test`.  MUTANT says which one; the rest does $REAL_DLOCK.
words=("$@")
for ((i = 0; i < $#; ++i)); do [[ ${words[i]} != -- ]] || break; done
options=("${words[@]:0:i}") command=("${words[@]:i+1}")

if [[ $1 == once && $MUTANT == "remembers nothing" ]]; then
  words=("${options[@]:1}")
  exec "$REAL_DLOCK" run "${words[@]/#--remember=*/-q}" -- "${command[@]}"
fi
if [[ $1 == run ]]; then
  case $MUTANT in
    "takes no lock") DLOCK_FENCES=$(date +%s%N) exec "${command[@]}" ;;
    "repeats a token") exec "$REAL_DLOCK" "${options[@]}" -- env DLOCK_FENCES=1 "${command[@]}" ;;
    "leaves a holder")
      if mkdir "$TMPDIR/left" 2>/dev/null; then
        # No child of this one: it would be hit as a process of its run.
        (setsid "$REAL_DLOCK" run -k left -- sleep 100 >/dev/null 2>&1 &)
      fi
      ;;
    "locks up") [[ " $* " != *" -w 30 "* ]] || exit 75 ;; # as those that come after the faults
  esac
fi
exec "$REAL_DLOCK" "$@"
