#!/usr/bin/env python3
"""Compares the manual pages with the tables of the code: docs.py SOURCE DLOCK

Each option, variable, config key, column, exit status and backend is in the page where a reader looks for it, and no page
names one that does not exist.  The pages are valid mdoc, none is longer than 300 lines, a test runs each recipe, and the
examples that begin with "$ " print what they say.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

SOURCE, DLOCK = sys.argv[1:]
MAN = os.path.join(SOURCE, "man")
FILES = sorted(os.listdir(MAN))
faults = []


def check(holds, fault):
    if not holds:
        faults.append(fault)


def same(what, in_code, in_pages):
    check(set(in_code) <= set(in_pages), f"{what} missing in the pages: {sorted(set(in_code) - set(in_pages))}")
    check(set(in_pages) <= set(in_code), f"{what} of the pages that do not exist: {sorted(set(in_pages) - set(in_code))}")
    check(len(in_pages) == len(set(in_pages)), f"{what} twice: {sorted(x for x in set(in_pages) if in_pages.count(x) > 1)}")


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False, **more)


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as opened:
        return opened.read()


def has_page(name):
    return any(file.rsplit(".", 1)[0] == name for file in FILES)


def read_pages():
    """The texts by file name.  A page that is only a link to another is not among them."""
    pages, links = {}, {}
    for file in FILES:
        text = read("man", file)
        link = re.fullmatch(r"\.so man\d/(\S+)\n", text)
        if link:
            links[file.rsplit(".", 1)[0]] = link.group(1)
        else:
            pages[file] = text
            check(text.count("\n") <= 300, f"{file} is longer than 300 lines")
    for name, page in links.items():
        check(f".Nm {name}" in pages.get(page, ""), f"{name}: the page is no link to one that has it")
    return pages


PAGES = read_pages()


def section(page, heading):
    found = re.search(rf"^\.Sh {re.escape(heading)}\n(.*?)(?=^\.Sh |\Z)", PAGES[page], re.M | re.S)
    if not found:
        sys.exit(f"{page} has no section {heading}")
    return found.group(1)


def items(text, macro):
    """The words that the macro marks behind .It: `.It Fl k , Fl -key Ar KEY` has k and -key for Fl."""
    out = []
    for line in re.findall(rf"^\.It {macro} .*$", text, re.M):
        marked = re.split(r" (?:Ar|Ns|Ta) ", line)[0].split()[1:]
        out += [word for word in marked if word not in (macro, ",")]
    return out


def read_commands():
    """kRun: run, and so on, of those that people use."""
    found = dict(re.findall(r'\.id = (\w+),\s*\.name = "([a-z-]+)"', read("src/cli/commands.cpp")))
    return {identifier: name for identifier, name in found.items() if name != "complete"}


COMMANDS = read_commands()
WITHOUT_PAGE = ("help", "version")  # dlock(1) has them


def read_options():
    """The rows of the table of flags, as dictionaries."""
    code = read("src/cli/flags.cpp")
    sets = {identifier: [name] for identifier, name in COMMANDS.items()}
    sets.update(kEveryCommand=list(COMMANDS.values()), kComplete=[])
    for name, value in re.findall(r"constexpr unsigned (k\w+) = ([^;]+);", code):
        sets[name] = [command for part in value.split("|") for command in sets[part.strip()]]
    options = []
    for row in code.split("Flag{.name")[1:]:
        row = row[:row.index(".brief")]
        fields = dict(re.findall(r'\.(\w+) = ["\']?([^"\',]+)', ".name" + row))
        limits = re.search(r'\.range = \{[^"]*"([^"]*)"', row)
        options.append({
            "name": fields["name"], "letter": fields.get("letter"), "setting": fields.get("setting", fields["name"]),
            "said": fields.get("said", "Said::everywhere").removeprefix("Said::"),
            "users": [command for part in fields["commands"].split("|") for command in sets[part.strip()]],
            "choices": re.findall(r'"([^"]*)"', (re.search(r"\.choices = \{([^}]*)\}", row) or [""])[0]),
            "limits": re.findall(r"[1-9]\d*[smhd]*", limits.group(1)) if limits and fields["name"] != "while" else []})
    check(len(options) > 35, f"only {len(options)} options found in flags.cpp")
    return options


OPTIONS = read_options()


def pages_of(option):
    """Where it is described: by its command, or once for all."""
    name, users = option["name"], set(option["users"]) - set(WITHOUT_PAGE)
    if name in ("server", "prefix", "schema"):
        return {"dlock-backends.7"}
    if name == "help" or {"run", "force-release"} <= users:
        return {"dlock.1"}
    pages = {{"renew": "acquire", "release": "acquire", "show": "list", "watch": "list"}.get(user, user) for user in users}
    if "run" in pages:  # The pages of these two refer to that of run, but have more to say of some.
        pages -= {"once"} if name in ("key", "ttl") else {"once", "acquire"}
    return {f"dlock-{page}.1" for page in pages}


def check_findings():
    """Each finding of doctor has a heading in its page."""
    found = set()
    for folder, _, files in os.walk(os.path.join(SOURCE, "src")):
        for file in files:
            code = read(folder, file) if file in ("examine.cpp", "examine_sentinels.cpp", "settings_in_force.cpp", "cmd_doctor.cpp", "try_lock.cpp") else ""
            found |= set(re.findall(r'"((?:file|redis|sentinel|redlock|mysql|postgres|zookeeper)-[a-z-]+)"', code))
            found |= set(re.findall(r'(?:Check<Facts>\{|cannot_look\(|push_back\(\s*\{|\.name =|note\(|return \{)\s*"([a-z-]+)"', code))
    check(len(found) > 30, f"only {len(found)} findings found in the code")
    same("findings", found, items(section("dlock-doctor.1", "FINDINGS"), "Cm"))


def check_options():
    headings = {"dlock.1": "COMMON OPTIONS"}
    for page in set().union(*map(pages_of, OPTIONS)):
        wanted = []
        for option in OPTIONS:
            if page in pages_of(option):
                wanted += ["-" + option["name"]] + ([option["letter"]] if option["letter"] else [])
        same(f"{page}: options", wanted, items(section(page, headings.get(page, "OPTIONS")), "Fl"))
    for option in OPTIONS:
        item = rf"^\.It Fl (?:\w , Fl )?-{option['name']}\b.*\n((?:(?!\.It |\.El|\.Sh ).*\n)*)"
        for page in pages_of(option):
            told = "".join(re.findall(item, PAGES[page], re.M))
            for word in option["choices"] + option["limits"]:
                check(re.search(rf"\b{re.escape(word)}\b", told), f"{page}: --{option['name']} does not name {word}")


def check_that_options_exist():
    known = {option["name"] for option in OPTIONS} | {option["letter"] for option in OPTIONS} | {"-"}
    for page, text in PAGES.items():
        told = re.findall(r"(?:^\.| )Fl -?([a-z-]+)", text, re.M)
        for line in re.findall(r"^(?:\.Li )?(?!\.).*\bdlock [a-z-]+ .*$", text, re.M):
            for words in re.findall(r"\bdlock [a-z-]+ ((?:(?! -- |[;|)#]).)*)", re.sub(r"\$\([^)]*\)", "", line)):
                told += re.findall(r"(?<!\S)--([a-z-]+)", words)
                told += "".join(re.findall(r"(?<!\S)-([a-zA-Z]+)(?!\S)", words))
        check(set(told) <= known, f"{page}: options that do not exist: {sorted(set(told) - known)}")


def check_tables():
    remarks = {"in_profiles": "in profiles only", "not_in_config": "not in a file", "everywhere": ""}
    keys = [(option["setting"].replace("-", "_"), remarks[option["said"]])
            for option in OPTIONS if option["said"] in remarks]
    rows = re.findall(r"^\.It Cm (\w+) Ta Ev (\w+) Ta ?(.*)$", section("dlock-config.5", "KEYS AND VARIABLES"), re.M)
    same("keys and variables", [(key, "DLOCK_" + key.upper(), remark) for key, remark in keys],
         [(key, name, "" if key == "verbose" else remark) for key, name, remark in rows])

    columns = re.search(r"COLUMNS are: ([^.]*)\.", run(DLOCK, "help", "list").stdout).group(1)
    same("columns", re.split(r",\s+", columns), items(section("dlock-list.1", "COLUMNS"), "Cm"))

    statuses = re.findall(r"constexpr int k\w+ = (\d+);", read("src/engine/exit_status.hpp"))
    same("exit statuses", [status for status in statuses if status not in ("1", "128")],
         re.findall(r"^\.It Sy (\d+)$", section("dlock.1", "EXIT STATUS"), re.M))

    features = dict(re.findall(r"^\.It Cm ([a-z-]+) Ta (.*)$", section("dlock-backends.7", "FEATURES"), re.M))
    entries = json.loads(run(DLOCK, "backends", "--json").stdout)
    same("backends", [entry["name"] for entry in entries], list(features))
    for entry in entries:
        row = features[entry["name"]].split(" Ta ")
        row.pop(2)  # acquire --ttl
        true = ["at once" if entry["ends_on"] == "exit" else "after a TTL",
                "in order" if entry["order"] == "fifo" else "no order", "yes" if entry["ids"] else "no"]
        check(row == true, f"features of {entry['name']}: {row}")


def check_form():
    for page, text in PAGES.items():
        ending = ["SEE ALSO"] if page in ("dlock-recipes.7", "dlock-troubleshooting.7") else ["EXIT STATUS", "SEE ALSO"]
        headings = re.findall(r"^\.Sh (.*)$", text, re.M)
        check(headings[-len(ending):] == ending, f"{page} ends with {headings[-2:]}")
        for display in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.M | re.S):
            check(max(map(len, display.split("\n"))) <= 80, f"{page}: an example is wider than 80 columns:\n{display}")
        path = os.path.join(MAN, page)
        lint = run("mandoc", "-T", "lint", "-W", "warning", path).stdout
        check(not lint, lint)
        shown = run("man", "--warnings", "-E", "UTF-8", "-l", path, env=dict(os.environ, MANWIDTH="80"))
        check(not shown.stderr, f"man warns about {page}: {shown.stderr}")


def check_references():
    """What sends a reader to a page: other pages, README, messages, help."""
    for command in COMMANDS.values():
        check(command in WITHOUT_PAGE or has_page(f"dlock-{command}"), f"{command} has no page")
    briefs = dict(re.findall(r"^  ([a-z-]+)  +([a-z].*)$", run(DLOCK, "help").stdout, re.M))
    for command in ("run", "once", "force-release", "id"):  # each has a page of its own
        check(f".Nd {briefs[command]}\n" in PAGES[f"dlock-{command}.1"], f"dlock-{command}.1: .Nd is not that of help")
    for page, text in PAGES.items():
        for name, chapter in re.findall(r"\.Xr (dlock\S*) (\d)", text):
            check(f"{name}.{chapter}" in FILES, f"{page}: there is no {name}({chapter})")
    texts = {f"help {command}": run(DLOCK, "help", command).stdout for command in COMMANDS.values()}
    texts["help"] = run(DLOCK, "help").stdout
    for folder, _, names in os.walk(os.path.join(SOURCE, "src")):
        texts.update((name, read(folder, name)) for name in names)
    for place, text in texts.items():
        for name in re.findall(r"\bman (dlock(?:-[a-z]+)*)", text):
            check(has_page(name), f"{place}: there is no page {name}")
    for name in re.findall(r"`(?:man )?(dlock-[a-z-]+)`", read("README.md") + read("CONTRIBUTING.md")):
        check(has_page(name), f"README.md or CONTRIBUTING.md: there is no page {name}")


def check_recipes():
    """A test names each recipe where it fetches it, or in the list of a loop that fetches them."""
    fetched = set()
    for file in os.listdir(os.path.join(SOURCE, "tests/cli")):
        if file.startswith("recipe") or "of-the-manual" in file:
            for words in re.findall(r"\brecipe ([\w-]+)|\bwrite_recipes ([\w -]+)|^for \w+ in ([\w -]+)",
                                    read("tests/cli", file), re.M):
                fetched.update(" ".join(words).split())
    for page, text in PAGES.items():
        recipes = re.findall(r'^\.\\" recipe: (\S+)$', text, re.M)
        check(set(recipes) <= fetched, f"{page}: no test runs {sorted(set(recipes) - fetched)}")
        if page == "dlock-recipes.7":
            check(len(recipes) == text.count("\n.Bd -literal"), f"{page}: an example without a mark")


def check_examples():
    examples = re.findall(r"^\$ (.*)\n((?:(?!\$ |\.Ed|\n).*\n)*)", "".join(PAGES.values()), re.M)
    check(examples, "no example runs")
    with tempfile.TemporaryDirectory() as home:
        environment = dict(os.environ, HOME=home, PATH=f"{home}:{os.environ['PATH']}", DLOCK_CONFIG="",
                           DLOCK_BACKEND=f"file://{home}")
        os.symlink(os.path.abspath(DLOCK), os.path.join(home, "dlock"))
        for command, printed in examples:
            done = run("sh", "-c", command, env=environment)
            check(done.stdout + done.stderr == printed, f"$ {command}\n{done.stdout}{done.stderr}")


check_options()
check_findings()
check_that_options_exist()
check_tables()
check_form()
check_references()
check_recipes()
check_examples()
sys.exit("\n".join(faults) or 0)
