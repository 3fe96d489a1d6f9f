-- Breaks one grant, and keeps the reason for the holder.  If it is said again, it finds what it has done.
-- The last answer: {done, writable, session of the holder if that is another one, session that has its row locked}.
SET @dlock_writable = {writable};
UPDATE {locks} SET role = 'broken', sole = NULL, why = {why}, expires_at = {reason_expiry}
 WHERE owner = {owner} AND method = {method} AND name = {key} AND @dlock_writable
   AND (role = 'holder' AND {is_there} OR role = 'broken' AND why = {why});
SET @dlock_done = ROW_COUNT();
SELECT @dlock_done, @dlock_writable AND {writable}, {other_session}, {row_session}
