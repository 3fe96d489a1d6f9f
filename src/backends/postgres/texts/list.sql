-- All rows of the keys that begin so.
SELECT {columns} FROM {locks}
 WHERE method = {method} AND starts_with(name, {prefix}) ORDER BY name, since, owner
