-- All rows of a key.
-- Answers: as those of state.sql.
SELECT {writable}, (SELECT version FROM {keys} WHERE method = {method} AND name = {key}), NULL, NULL;
SELECT {columns} FROM {locks} WHERE method = {method} AND name = {key} ORDER BY since, owner
