"""Texts: every header opens with a paragraph, every script says what it does, nothing in the tree
names the place it was written at, no line passes 100 columns, an integer does not hide its unit
behind `size`, `time` or `len`, and the name of a test reads as a sentence."""
import re

from common import ROOT, Finding, blank_comments, is_script, project_paths

_MAX_COLUMNS = 100
_MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(work|home|root)/\w")
_TEXT_SUFFIXES = (
    ".md",
    ".h",
    ".cpp",
    ".c",
    ".py",
    ".sh",
    ".txt",
    ".cmake",
    ".json",
    ".toml",
    ".in",
)
_BARE_NAME = re.compile(
    r"\b(?:u?int(?:8|16|32|64)?_t|size_t|int|unsigned|long)"
    r"\s+(size|time|len|length|timeout)\s*[;,)={]"
)
_CAMEL_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*\w+,\s*([A-Z]\w*)\s*\)", re.M)


def _header_comment(source):
    lines = source.lines
    if not re.match(r"(///?|/\*) ?\S", lines[0]):
        return Finding(
            source.path,
            1,
            "a header opens with a paragraph: what it is, who owns it, which thread, what it costs",
        )
    return None


def _script_comment(source):
    lines = source.lines
    second = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
    if not re.match(r'#\s\S|"""\S|#\s*-\*-', second):
        return Finding(source.path, 1, "a script says in its first lines what it does")
    return None


def _long_lines(source):
    for number, line in enumerate(source.lines, 1):
        if len(line) > _MAX_COLUMNS:
            yield Finding(
                source.path, number, f"{len(line)} columns, the ceiling is {_MAX_COLUMNS}"
            )


def _test_names(source):
    for match in _CAMEL_TEST.finditer(source.text):
        line = source.text.count("\n", 0, match.start()) + 1
        yield Finding(source.path, line, f"{match.group(1)}: a test's name is snake_case")


def check(sources, exceptions):
    for source in sources:
        yield from _long_lines(source)
        yield from _test_names(source)
        finding = None
        if source.suffix == ".h":
            finding = _header_comment(source)
        elif is_script(source.path):
            finding = _script_comment(source)
        if finding:
            yield finding
        if (
            source.suffix == ".h"
            and not source.path.startswith("tests/")
            and ("names", source.path) not in exceptions
        ):
            for number, line in enumerate(blank_comments(source.text).split("\n"), 1):
                match = _BARE_NAME.search(line)
                if match:
                    yield Finding(
                        source.path,
                        number,
                        f"'{match.group(1)}' hides its unit: _bytes, _count, _ns, ...",
                    )


def check_places(exceptions):
    """Paths of the machine it was written on, in any text of the tree."""
    del exceptions
    for path in project_paths():
        if path.endswith(_TEXT_SUFFIXES) or is_script(path):
            for number, line in enumerate((ROOT / path).read_text(errors="replace").split("\n"), 1):
                if _MACHINE_PATH.search(line):
                    yield Finding(path, number, "names a path of one machine")
