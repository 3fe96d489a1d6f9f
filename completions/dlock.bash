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
        mapfile -t COMPREPLY < <(compgen -W 'run once acquire renew release list show force-release id backends help version --help --version' -- "$cur")
        return
    fi

    case $prev in
    --on-lost)
        mapfile -t COMPREPLY < <(compgen -W 'term kill ignore' -- "$cur")
        return
        ;;
    --leftovers)
        mapfile -t COMPREPLY < <(compgen -W 'ignore wait kill' -- "$cur")
        return
        ;;
    --status-file)
        _dlock_files "$cur"
        return
        ;;
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
    --schema)
        _dlock_backends "$1" "$cur"
        return
        ;;
    -b | --backend)
        _dlock_backends "$1" "$cur"
        return
        ;;
    --config)
        _dlock_files "$cur"
        return
        ;;
    --password-file)
        _dlock_files "$cur"
        return
        ;;
    -k | --key | -w | --wait | --ttl | --slots | --label | --kill-after | -E | --conflict-exit-code | --max-hold | --min-hold | --remember | --done-exit-code | --while | -o | --output | --older-than | --id | --reason | --name | --count | -S | --server | --connect-timeout | --prefix)
        return
        ;;
    esac

    case ${COMP_WORDS[1]} in
    run)
        flags='--key --nonblock --wait --ttl --shared --slots --label --kill-after --on-lost --conflict-exit-code --leftovers --max-hold --min-hold --status-file --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help --'
        ;;
    once)
        flags='--key --nonblock --wait --ttl --label --kill-after --on-lost --conflict-exit-code --leftovers --max-hold --status-file --remember --every --done-exit-code --reset --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help --'
        ;;
    acquire)
        flags='--key --nonblock --wait --ttl --shared --slots --label --kill-after --on-lost --while --export --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help'
        ;;
    renew)
        flags='--key --ttl --token-file --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help'
        ;;
    release)
        flags='--key --token-file --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help'
        ;;
    list)
        flags='--output --done --older-than --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help'
        ;;
    show)
        flags='--output --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help'
        ;;
    force-release)
        flags='--older-than --id --reason --yes --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help'
        ;;
    id)
        flags='--name --snowflake --count --backend --server --quiet --verbose --json --config --password-file --connect-timeout --prefix --help'
        ;;
    backends)
        flags='--schema --json --prefix --help'
        ;;
    help)
        flags='run once acquire renew release list show force-release id backends help version --help'
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
