-- Removes keys that were not granted for a week still.  Their grants go on in new rows with larger numbers.
DELETE FROM {keys} WHERE method = {method} AND name IN ({names}) AND version < {now_ms} - 604800000
