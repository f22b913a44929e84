"""Ceilings: file 500 lines, function 60 lines, nesting 4. A trigger to look; an exception is one
line with its reason in exceptions.txt. Reads C and C++ as clang-format lays it out, Python by its
ast."""
import ast
import dataclasses
import re

from common import Finding, blank_comments

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_NESTING = 4

_NOT_A_FUNCTION = re.compile(
    r"\b(namespace|class|struct|union|enum|if|for|while|switch|do|else|catch|try|return)\b"
)
_TYPE = re.compile(r"\b(class|struct|union|enum|namespace)\b|\bextern\s*_+\s*$")
_BLOCK_END = re.compile(r"(\)|\belse|\bdo|\btry|\bconst|\bnoexcept|\bmutable|[;{}:])\s*$")
_NAME = re.compile(r"([~\w:]+(?:\s*operator\s*\S+)?)\s*\(")


@dataclasses.dataclass
class Function:
    name: str
    first_line: int
    last_line: int
    nesting: int

    @property
    def line_count(self):
        return self.last_line - self.first_line + 1


class _Scanner:
    """Walks braces, keeps a stack of what each opened: type, function, block or init list."""

    def __init__(self, text):
        self.text = blank_comments(text)
        self.stack = []
        self.functions = []

    def scan(self):
        start = 0  # of the text since the last brace or semicolon
        depth = 0  # of parentheses; a semicolon inside for (;;) ends nothing
        line = 1
        for i, c in enumerate(self.text):
            if c == "\n":
                line += 1
            elif c == "(":
                depth += 1
            elif c == ")":
                depth -= 1
            elif c == "{":
                self._open(self.text[start:i], line, depth)
                self.stack[-1]["depth"] = depth
                depth = 0
                start = i + 1
            elif c == "}" and self.stack:
                depth = self.stack[-1]["depth"]
                self._close(line)
                start = i + 1
            elif c == ";" and depth == 0:
                start = i + 1
        return self.functions

    def _open(self, before, line, depth):
        before = "\n".join(l for l in before.split("\n") if not l.lstrip().startswith("#"))
        inside = any(s["kind"] == "function" for s in self.stack)
        if inside:
            kind = "block" if _BLOCK_END.search(before) or not before.strip() else "init"
        elif _TYPE.search(before) and not re.search(
            r"\)\s*(const|noexcept|override|final|\s)*$", before
        ):
            kind = "type"
        elif (
            "(" in before
            and depth == 0
            and not _NOT_A_FUNCTION.search(before.split("(")[0])
            and not re.search(r"=\s*$|=[^=()]*$", before)
        ):
            kind = "function"
        else:
            kind = "init" if depth or "=" in before else "type"
        first_line = line - before.lstrip().count("\n")
        self.stack.append({"kind": kind, "before": before, "line": first_line, "nesting": 0})
        if kind == "block":
            self._note_nesting()

    def _note_nesting(self):
        base = next(i for i, s in enumerate(self.stack) if s["kind"] == "function")
        blocks = sum(1 for s in self.stack[base + 1 :] if s["kind"] == "block")
        self.stack[base]["nesting"] = max(self.stack[base]["nesting"], blocks)

    def _close(self, line):
        top = self.stack.pop()
        if top["kind"] == "function":
            names = _NAME.findall(top["before"])
            name = names[0] if names else "?"
            self.functions.append(Function(name, top["line"], line, top["nesting"]))


def c_functions(text):
    return _Scanner(text).scan()


def python_functions(text):
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(Function(node.name, node.lineno, node.end_lineno, 0))
    return found


def _functions(source):
    if source.is_c:
        return c_functions(source.text)
    if source.suffix == ".py" or source.text.startswith("#!/usr/bin/python3"):
        return python_functions(source.text)
    return []


def check(sources, exceptions):
    for source in sources:
        line_count = len(source.lines) - 1
        if line_count > MAX_FILE_LINES and ("file", source.path) not in exceptions:
            yield Finding(
                source.path,
                1,
                f"{line_count} lines, the ceiling is {MAX_FILE_LINES}: split it by what it does",
            )
        for function in _functions(source):
            subject = f"{source.path}:{function.name}"
            if function.line_count > MAX_FUNCTION_LINES and ("function", subject) not in exceptions:
                yield Finding(
                    source.path,
                    function.first_line,
                    f"{function.name}() has {function.line_count} lines, "
                    f"the ceiling is {MAX_FUNCTION_LINES}",
                )
            if function.nesting > MAX_NESTING and ("nesting", subject) not in exceptions:
                yield Finding(
                    source.path,
                    function.first_line,
                    f"{function.name}() nests {function.nesting} deep, "
                    f"the ceiling is {MAX_NESTING}: return early",
                )
