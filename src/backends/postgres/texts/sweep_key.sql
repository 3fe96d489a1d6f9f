-- Removes the rows of waiters of this key that are not there any more.
DELETE FROM {locks} WHERE method = {method} AND name = {key} AND role = 'waiter' AND owner <> {owner} AND {is_gone}
