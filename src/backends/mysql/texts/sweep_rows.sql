-- Removes those of these rows that nobody uses still: a waiter may be a holder by now.
DELETE FROM {locks} WHERE owner IN ({owners})
   AND (role = 'waiter' AND {waiter_is_gone} OR expires_at < {now} - INTERVAL 1 HOUR AND {is_gone})
