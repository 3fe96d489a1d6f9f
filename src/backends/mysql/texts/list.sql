-- All rows of the keys that begin so.
SELECT {columns} FROM {locks}
 WHERE method = {method} AND LEFT(name, {length}) = {prefix} ORDER BY name, since, owner
