-- Stands before other texts: waits until the session of a holder has ended or has released its name.
-- The answer: {the name was free}.
SELECT IF(GET_LOCK({holder}, {seconds}) = 1, RELEASE_LOCK({holder}), 0);
