-- Ends a session if it is that of this owner still, which any user may do to its own ones.
SELECT pg_terminate_backend(pid) FROM {session_locks}
 WHERE pid = {session} AND {session_lock} IN ({own}, {row}) LIMIT 1
