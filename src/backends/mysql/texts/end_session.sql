-- Ends a session, which any user may do to its own ones.
KILL {session}
