-- Stands before state.sql: waits until the session of a holder has ended or has released its name.
-- The answer: {the name was free, gate}.
SELECT IF(GET_LOCK({holder}, {seconds}) = 1, RELEASE_LOCK({holder}), 0), 1;
