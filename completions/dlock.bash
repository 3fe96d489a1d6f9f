# bash completion for dlock.  Written by "dlock generate bash"; do not edit.

_dlock()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i flags= joined=
    COMPREPLY=()

    # Behind "--" stands the user's own command line.
    for ((i = 2; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        if declare -F _command_offset > /dev/null; then
            _command_offset $((i + 1))
        elif ((i + 1 == COMP_CWORD)); then
            mapfile -t COMPREPLY < <(compgen -c -- "$cur")
        else
            _dlock_files "$cur"
        fi
        return
    done

    # "--flag=value" comes as three words.
    if [[ $cur == = ]]; then
        cur= joined=1
    elif [[ $prev == = ]] && ((COMP_CWORD > 2)); then
        prev=${COMP_WORDS[COMP_CWORD - 2]} joined=1
    fi

    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W 'run once list show force-release acquire renew release backends id help version --help --version' -- "$cur")
        return
    fi

    case $prev in
    --every)
        mapfile -t COMPREPLY < <(compgen -W '1h 1d 1w' -- "$cur")
        return
        ;;
    --export)
        if [[ -n $joined ]]; then
            mapfile -t COMPREPLY < <(compgen -W 'sh fish' -- "$cur")
            return
        fi
        ;;
    --token-file)
        _dlock_files "$cur"
        return
        ;;
    --on-lost)
        mapfile -t COMPREPLY < <(compgen -W 'term kill ignore' -- "$cur")
        return
        ;;
    --leftovers)
        mapfile -t COMPREPLY < <(compgen -W 'ignore wait kill' -- "$cur")
        return
        ;;
    --schema)
        _dlock_backends "$1" "$cur"
        return
        ;;
    --status-file)
        _dlock_files "$cur"
        return
        ;;
    -b | --backend)
        _dlock_backends "$1" "$cur"
        return
        ;;
    --password-file)
        _dlock_files "$cur"
        return
        ;;
    --config)
        _dlock_files "$cur"
        return
        ;;
    -k | --key | -w | --wait | --slots | --ttl | --label | --remember | --done-exit-code | --while | --max-hold | --min-hold | --kill-after | -o | --output | --older-than | --id | --reason | --name | --count | -E | --conflict-exit-code | --connect-timeout | -S | --server | --prefix)
        return
        ;;
    esac

    case ${COMP_WORDS[1]} in
    run)
        flags='--key --nonblock --wait --shared --slots --ttl --label --max-hold --min-hold --on-lost --kill-after --leftovers --conflict-exit-code --status-file --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help --'
        ;;
    once)
        flags='--key --nonblock --wait --ttl --label --remember --every --reset --done-exit-code --max-hold --on-lost --kill-after --leftovers --conflict-exit-code --status-file --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help --'
        ;;
    list)
        flags='--output --done --older-than --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help'
        ;;
    show)
        flags='--output --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help'
        ;;
    force-release)
        flags='--older-than --id --reason --yes --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help'
        ;;
    acquire)
        flags='--key --nonblock --wait --shared --slots --ttl --label --while --export --on-lost --kill-after --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help'
        ;;
    renew)
        flags='--key --ttl --token-file --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help'
        ;;
    release)
        flags='--key --token-file --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help'
        ;;
    backends)
        flags='--schema --json --prefix --help'
        ;;
    id)
        flags='--name --snowflake --count --quiet --verbose --json --backend --password-file --config --connect-timeout --server --prefix --help'
        ;;
    help)
        flags='run once list show force-release acquire renew release backends id help version --help'
        ;;
    version)
        flags='--help'
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
}

_dlock_files()
{
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# The name of a profile can be any text: it is offered as it must be typed, and never expanded, as
# compgen -W would.  Where a quotation mark is open, only names that need none are offered.
_dlock_backends()
{
    local name quoted
    while IFS=$'\t' read -r name _; do
        printf -v quoted %q "$name"
        if [[ $quoted == "$2"* || ($quoted == "$name" && $name == "${2#[\"\']}"*) ]]; then
            COMPREPLY+=("$quoted")
        fi
    done < <("$1" complete backends 2> /dev/null)
}

complete -F _dlock dlock
