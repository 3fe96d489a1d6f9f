# fish completion for dlock.  "dlock complete" answers, see src/cli/cmd.hpp.
function __dlock_complete
    set -l words (commandline -opc)[2..]
    set -l last (commandline -ct)
    # dlock sees the words without quotes, and of the last one only what is before the first quote.
    set -l answer (command dlock complete -- $words (string replace -r '[\'"\\\\].*' '' -- "$last") 2>/dev/null)
    switch "$answer[1]"
        case \tfiles
            set -l option (string match -r -- '^--[^=]*=' "$last")
            set -l files (complete -C "'' "(string replace -- "$option" '' "$last"))
            string replace -r -- '^' "$option" $files
        case \tcommand\ \*
            set -l first (string replace \tcommand\  '' -- $answer[1])
            complete -C (string join ' ' -- (string escape -- $words[$first..]) "$last")
        case '*'
            printf '%s\n' $answer
    end
end
complete -c dlock -f -k -a '(__dlock_complete)'
