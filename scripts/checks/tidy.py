#!/usr/bin/python3
"""Runs clang-tidy on files of a build, as many at a time as there are cores; prints what it finds.

    scripts/checks/tidy.py BUILD FILE...      exit 1 when anything was found

A header is looked at in one of the sources that include it: that of its name, else the first that
was not generated.
A file without findings is not looked at again, by any clone of this user, until it changes, or
anything it includes of this tree, its flags or the rules: $XDG_CACHE_HOME/aon-tidy has an empty
file for each that passed, named by a hash of all that.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIDY = ["clang-tidy-14", "--quiet", "--extra-arg=-Wno-unknown-warning-option"]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "aon-tidy"


def read_dependencies(build):
    """{object: files of this tree that it was compiled from}, as ninja knows them."""
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True)
    dependencies = {}
    for block in done.stdout.split("\n\n"):
        head, *paths = block.splitlines() or [""]
        name, _, state = head.partition(": ")
        if not state.endswith("(VALID)"):
            continue
        absolute = [pathlib.Path(os.path.normpath(build / path.strip())) for path in paths]
        dependencies[name] = [path for path in absolute if path.is_relative_to(ROOT)]
    return dependencies


def rules():
    version = subprocess.run([TIDY[0], "--version"], capture_output=True, text=True, check=True)
    files = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "*.clang-tidy"],
                           cwd=ROOT, capture_output=True, text=True, check=True)
    texts = [(ROOT / name).read_text() for name in files.stdout.split()]
    return " ".join(TIDY) + version.stdout + "".join(texts)


def object_of(entry):
    return re.search(r" -o (\S+) ", entry["command"]).group(1)


def sources_of(wanted, entries, dependencies):
    """What the build compiles of `wanted` (others have no flags to be read with), by name."""
    includers = {}
    for path in sorted(path for path in entries if "generated" not in path.parts):
        for file in dependencies.get(object_of(entries[path]), []):
            includers.setdefault(file, path)
    named = [path.with_suffix(".cpp") if path.suffix == ".h" else path for path in wanted]
    return sorted({name if name in entries else includers.get(path)
                   for path, name in zip(wanted, named)} - {None})


def key_of(entry, dependencies, common):
    """None where what it includes is not known: it was not compiled yet."""
    files = dependencies.get(object_of(entry))
    if files is None:
        return None
    key = hashlib.sha256(f"{common}\n{entry['command']}".replace(str(ROOT), "").encode())
    for path in sorted(files):
        key.update(f"\n{path.relative_to(ROOT)}\n".encode())
        key.update(hashlib.sha256(path.read_bytes()).digest())
    return key.hexdigest()


def look_at(path, build, key):
    """What clang-tidy finds in `path`; empty: nothing."""
    if key and (CACHE / key).exists():
        return ""
    done = subprocess.run([*TIDY, "-p", build, path], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stdout or done.stderr
    if key:
        (CACHE / key).touch()
    return ""


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = [ROOT / name for name in sys.argv[2:]]
    commands = json.loads((build / "compile_commands.json").read_text())
    entries = {pathlib.Path(entry["file"]): entry for entry in reversed(commands)}
    CACHE.mkdir(parents=True, exist_ok=True)
    dependencies, common = read_dependencies(build), rules()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [pool.submit(look_at, path, build, key_of(entries[path], dependencies, common))
                   for path in sources_of(wanted, entries, dependencies)]
        findings = [r.result() for r in results if r.result()]
    print("".join(findings), end="")
    print(f"check: tidy: {'findings' if findings else f'ok ({len(results)} files)'}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
