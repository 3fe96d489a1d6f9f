# fish completion for dlock.  Written by "dlock generate fish"; do not edit.

# True while the words of dlock itself are typed, its command being the first of them; with an
# argument, true if that is the command.
function __dlock_at
    set -l words (commandline -opc)
    contains -- -- $words[2..]
    and return 1
    if set -q argv[1]
        test "$words[2]" = "$argv[1]"
    else
        test (count $words) -eq 1
    end
end

# True behind "--", where the user's own command line stands.
function __dlock_in_command
    set -l words (commandline -opc)
    contains -- -- $words[2..]
end

function __dlock_complete_command
    set -l words (commandline -opc)
    set -l mark (contains --index -- -- $words)
    set -l inner (string escape -- $words[(math $mark + 1)..]) (commandline -ct)
    complete -C "$inner"
end

function __dlock_backends
    set -l words (commandline -opc)
    $words[1] complete backends 2>/dev/null
end

complete -c dlock -f
complete -c dlock -n __dlock_in_command -a '(__dlock_complete_command)'
complete -c dlock -n __dlock_at -l help -s h -d 'show an overview'
complete -c dlock -n __dlock_at -l version -d 'show the version'
complete -c dlock -n __dlock_at -a run -d 'hold a lock while a command runs'
complete -c dlock -n __dlock_at -a once -d 'run a command once per period, on one machine of several'
complete -c dlock -n __dlock_at -a list -d 'list the locks that are held'
complete -c dlock -n __dlock_at -a show -d 'show the holder of a lock, and who waits for it'
complete -c dlock -n __dlock_at -a force-release -d 'take a lock away from its holder'
complete -c dlock -n __dlock_at -a acquire -d 'acquire a lock and exit; the lock stays held'
complete -c dlock -n __dlock_at -a renew -d 'extend a lock of acquire --ttl'
complete -c dlock -n __dlock_at -a release -d 'release a lock of acquire'
complete -c dlock -n __dlock_at -a backends -d 'list the backends and their features'
complete -c dlock -n __dlock_at -a id -d 'print unique, growing numbers'
complete -c dlock -n __dlock_at -a help -d 'show the options of a command'
complete -c dlock -n __dlock_at -a version -d 'show the version'

complete -c dlock -n '__dlock_at run' -l key -s k -x -d 'name of the lock; all but once take several'
complete -c dlock -n '__dlock_at run' -l nonblock -s n -d 'do not wait: exit with 75 if the lock is held'
complete -c dlock -n '__dlock_at run' -l wait -s w -x -d 'wait at most this long, then exit with 75'
complete -c dlock -n '__dlock_at run' -l shared -d 'share the lock with other --shared holders'
complete -c dlock -n '__dlock_at run' -l slots -x -d 'allow N holders at once; all must give the same N'
complete -c dlock -n '__dlock_at run' -l ttl -x -d 'the lock expires this long after its last renewal'
complete -c dlock -n '__dlock_at run' -l label -x -d 'show TEXT to others, for example the URL of a CI job'
complete -c dlock -n '__dlock_at run' -l max-hold -x -d 'end COMMAND after this time, and exit with 124'
complete -c dlock -n '__dlock_at run' -l min-hold -x -d 'keep the lock at least so long from when it was acquired'
complete -c dlock -n '__dlock_at run' -l on-lost -x -a 'term kill ignore' -d 'what to do with the command if the lock is lost'
complete -c dlock -n '__dlock_at run' -l kill-after -x -d 'time between SIGTERM and SIGKILL'
complete -c dlock -n '__dlock_at run' -l leftovers -x -a 'ignore wait kill' -d 'what to do with processes that outlive COMMAND'
complete -c dlock -n '__dlock_at run' -l conflict-exit-code -s E -x -d 'exit with N if the lock is held'
complete -c dlock -n '__dlock_at run' -l status-file -r -F -d 'write how the run ended to FILE, as JSON'
complete -c dlock -n '__dlock_at run' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at run' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at run' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at run' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at run' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at run' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at run' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at run' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at run' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at run' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at once' -l key -s k -x -d 'name of the lock; all but once take several'
complete -c dlock -n '__dlock_at once' -l nonblock -s n -d 'do not wait: exit with 75 if the lock is held'
complete -c dlock -n '__dlock_at once' -l wait -s w -x -d 'wait at most this long, then exit with 75'
complete -c dlock -n '__dlock_at once' -l ttl -x -d 'the lock expires this long after its last renewal'
complete -c dlock -n '__dlock_at once' -l label -x -d 'show TEXT to others, for example the URL of a CI job'
complete -c dlock -n '__dlock_at once' -l remember -x -d 'do the job again this long after it succeeded'
complete -c dlock -n '__dlock_at once' -l every -x -a '1h 1d 1w' -d 'do the job once in each hour, day or week of UTC'
complete -c dlock -n '__dlock_at once' -l reset -d 'forget that the job is done; without COMMAND'
complete -c dlock -n '__dlock_at once' -l done-exit-code -x -d 'exit with N if the job was done before'
complete -c dlock -n '__dlock_at once' -l max-hold -x -d 'end COMMAND after this time, and exit with 124'
complete -c dlock -n '__dlock_at once' -l on-lost -x -a 'term kill ignore' -d 'what to do with the command if the lock is lost'
complete -c dlock -n '__dlock_at once' -l kill-after -x -d 'time between SIGTERM and SIGKILL'
complete -c dlock -n '__dlock_at once' -l leftovers -x -a 'ignore wait kill' -d 'what to do with processes that outlive COMMAND'
complete -c dlock -n '__dlock_at once' -l conflict-exit-code -s E -x -d 'exit with N if the lock is held'
complete -c dlock -n '__dlock_at once' -l status-file -r -F -d 'write how the run ended to FILE, as JSON'
complete -c dlock -n '__dlock_at once' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at once' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at once' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at once' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at once' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at once' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at once' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at once' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at once' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at once' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at list' -l output -s o -x -d 'print these columns, separated by commas'
complete -c dlock -n '__dlock_at list' -l done -d 'list the jobs that are done (dlock once), not the locks'
complete -c dlock -n '__dlock_at list' -l older-than -x -d 'include only locks held for longer than this'
complete -c dlock -n '__dlock_at list' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at list' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at list' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at list' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at list' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at list' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at list' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at list' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at list' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at list' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at show' -l output -s o -x -d 'print these columns, separated by commas'
complete -c dlock -n '__dlock_at show' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at show' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at show' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at show' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at show' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at show' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at show' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at show' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at show' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at show' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at force-release' -l older-than -x -d 'include only locks held for longer than this'
complete -c dlock -n '__dlock_at force-release' -l id -x -d 'break the lock only if its id begins with PREFIX'
complete -c dlock -n '__dlock_at force-release' -l reason -x -d 'tell the holder why'
complete -c dlock -n '__dlock_at force-release' -l yes -s y -d 'break the lock without asking'
complete -c dlock -n '__dlock_at force-release' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at force-release' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at force-release' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at force-release' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at force-release' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at force-release' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at force-release' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at force-release' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at force-release' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at force-release' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at acquire' -l key -s k -x -d 'name of the lock; all but once take several'
complete -c dlock -n '__dlock_at acquire' -l nonblock -s n -d 'do not wait: exit with 75 if the lock is held'
complete -c dlock -n '__dlock_at acquire' -l wait -s w -x -d 'wait at most this long, then exit with 75'
complete -c dlock -n '__dlock_at acquire' -l shared -d 'share the lock with other --shared holders'
complete -c dlock -n '__dlock_at acquire' -l slots -x -d 'allow N holders at once; all must give the same N'
complete -c dlock -n '__dlock_at acquire' -l ttl -x -d 'the lock expires this long after its last renewal'
complete -c dlock -n '__dlock_at acquire' -l label -x -d 'show TEXT to others, for example the URL of a CI job'
complete -c dlock -n '__dlock_at acquire' -l while -x -d 'renew the lock until the process PID ends; in a script: $$'
complete -c dlock -n '__dlock_at acquire' -l export -a 'sh fish' -d 'print statements that set DLOCK_KEY, DLOCK_TOKEN and so on'
complete -c dlock -n '__dlock_at acquire' -l on-lost -x -a 'term kill ignore' -d 'what to do with the command if the lock is lost'
complete -c dlock -n '__dlock_at acquire' -l kill-after -x -d 'time between SIGTERM and SIGKILL'
complete -c dlock -n '__dlock_at acquire' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at acquire' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at acquire' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at acquire' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at acquire' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at acquire' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at acquire' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at acquire' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at acquire' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at acquire' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at renew' -l key -s k -x -d 'name of the lock; all but once take several'
complete -c dlock -n '__dlock_at renew' -l ttl -x -d 'the lock expires this long after its last renewal'
complete -c dlock -n '__dlock_at renew' -l token-file -r -F -d 'read the lock id, which acquire printed, from FILE'
complete -c dlock -n '__dlock_at renew' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at renew' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at renew' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at renew' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at renew' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at renew' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at renew' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at renew' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at renew' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at renew' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at release' -l key -s k -x -d 'name of the lock; all but once take several'
complete -c dlock -n '__dlock_at release' -l token-file -r -F -d 'read the lock id, which acquire printed, from FILE'
complete -c dlock -n '__dlock_at release' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at release' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at release' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at release' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at release' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at release' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at release' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at release' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at release' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at release' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at backends' -l schema -x -a '(__dlock_backends)' -d 'print the statements that create the tables of a backend'
complete -c dlock -n '__dlock_at backends' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at backends' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at backends' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at id' -l name -x -d 'print the next numbers of the counter NAME'
complete -c dlock -n '__dlock_at id' -l snowflake -d 'print 64-bit numbers made of time, worker and counter'
complete -c dlock -n '__dlock_at id' -l count -x -d 'print N numbers, one on each line'
complete -c dlock -n '__dlock_at id' -l quiet -s q -d 'print errors only; not that the lock is held'
complete -c dlock -n '__dlock_at id' -l verbose -s v -d 'print more; -vv: each request to the server, too'
complete -c dlock -n '__dlock_at id' -l json -d 'print JSON; messages are lines of JSON, too'
complete -c dlock -n '__dlock_at id' -l backend -s b -x -a '(__dlock_backends)' -d 'where locks are kept'
complete -c dlock -n '__dlock_at id' -l password-file -r -F -d 'read the password of the server from FILE'
complete -c dlock -n '__dlock_at id' -l config -r -F -d 'read this config file only'
complete -c dlock -n '__dlock_at id' -l connect-timeout -x -d 'time to reach the server at the start'
complete -c dlock -n '__dlock_at id' -l server -s S -x -d 'server of the backend, or several separated by commas'
complete -c dlock -n '__dlock_at id' -l prefix -x -d 'begin names on the server with this text'
complete -c dlock -n '__dlock_at id' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at help' -a 'run once list show force-release acquire renew release backends id help version'
complete -c dlock -n '__dlock_at help' -l help -s h -d 'show the options of the command'

complete -c dlock -n '__dlock_at version' -l help -s h -d 'show the options of the command'
