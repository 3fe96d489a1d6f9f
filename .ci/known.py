"""What a checker found clean is remembered by the hash of all that was read, and not looked at again."""
import concurrent.futures
import functools
import hashlib
import os
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dlock"


@functools.lru_cache(maxsize=None)
def hash_of(path):
    # A checkout elsewhere has the same text.
    return hashlib.sha256(pathlib.Path(path).read_bytes().replace(str(SOURCE).encode(), b"")).digest()


def check(kind, items, key_of, complaint_about, anew=False):
    """Looks at all items at once that are not known to be clean, and prints what is wrong.  The exit status: 0 or 1.

    key_of(item): a list of bytes, all that the outcome depends on; complaint_about(item): a text, empty if it is clean.
    """
    cache = CACHE / kind
    cache.mkdir(parents=True, exist_ok=True)

    def look_at(item):
        known = cache / hashlib.sha256(b"\0".join(key_of(item))).hexdigest()
        complaint = "" if known.exists() and not anew else complaint_about(item)
        if not complaint:
            known.touch()
        return complaint

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(look_at, items) if text]
    print("".join(complaints), end="")
    return 1 if complaints else 0
