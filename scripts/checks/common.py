"""What every check shares: which files the project has, the exceptions file, how a finding is told.

A check is a function that takes `Source` objects and yields `Finding`s. Run all: scripts/check.
"""
import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXCEPTIONS = pathlib.Path(__file__).with_name("exceptions.txt")
C_SUFFIXES = {".h", ".cpp", ".c"}


@dataclasses.dataclass
class Source:
    """One text file; `path` is relative to the project's root, with forward slashes."""

    path: str
    text: str

    @property
    def suffix(self):
        return pathlib.PurePosixPath(self.path).suffix

    @property
    def is_c(self):
        return self.suffix in C_SUFFIXES

    @property
    def lines(self):
        return self.text.split("\n")


@dataclasses.dataclass
class Finding:
    """What is wrong, where, and what to do about it."""

    path: str
    line: int
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}"


def project_paths():
    """Tracked and new files, without ignored ones and without generated folders."""
    output = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    paths = [p for p in output.split("\0") if p and "/generated/" not in p]
    return sorted(p for p in paths if (ROOT / p).is_file())


def is_script(path):
    file = pathlib.PurePosixPath(path)
    return file.suffix in {".py", ".sh"} or (
        file.suffix == "" and path.startswith(("scripts/", ".ci/"))
    )


def load_sources(paths=None):
    """C, C++ and script files as Source objects."""
    chosen = project_paths() if paths is None else paths
    kept = [p for p in chosen if pathlib.PurePosixPath(p).suffix in C_SUFFIXES or is_script(p)]
    return [Source(p, (ROOT / p).read_text(errors="replace")) for p in kept]


def load_exceptions():
    """{(check, subject): reason}; the file explains its lines."""
    entries = {}
    for line in EXCEPTIONS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            check, subject, reason = line.split(None, 2)
            entries[(check, subject)] = reason
    return entries


_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<delim>[^(\s]*)\(.*?\)(?P=delim)"'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.S,
)


def _blank(match):
    """Keeps line breaks, and the quotes of a string so that it still reads as one token."""
    text = match.group(0)
    if re.fullmatch(r"'[0-9a-fA-F]+", text):
        return text
    filler = " " if text.startswith(("//", "/*")) else "_"
    return "".join(c if c == "\n" else filler for c in text)


def blank_comments(text):
    """`text` with comments and strings blanked; every character keeps its place. Digit separators
    (1'000'000) are taken out first: they look like characters."""
    return _TOKEN.sub(_blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]{3})", "0", text))
