"""The documents are short, name only files that exist, say what checks them, and every block of
code in them is an excerpt of a file that is compiled or run. Sources name only files that exist,
and what an ABI has stands in its page."""
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCS = sorted((ROOT / "docs").glob("*.md"))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
TOP = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FOLDERS = "core|plugins|bindings|writers|launcher|tools|tests|docs|examples|scripts|cmake"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*\w/?)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
SOURCES = sorted(p for f in FOLDERS.split("|") for p in (ROOT / f).rglob("*.*")
                 if p.suffix in (".h", ".cpp", ".c"))
NAMED = re.compile(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./-]*\.(?:md|h|cpp|c|py|table))\b")
NAMED_TEST = re.compile(r"(?<![\w/.-])(\w+_test\.(?:py|cpp|sh))\b")
BLOCK = re.compile(r"^```(\S*)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
DRAWN = {"", "text", "console", "sh"}  # languages that are no source code of ours


def known_providers():
    """{provider: its library}, as the loader knows them."""
    code = (ROOT / "core/provider/names.cpp").read_text()
    names = code.split("kKnownNames{{")[1].split("}};")[0]
    known = re.findall(r'\{"([a-z-]+)"(?:, "([^"]+)")?', names)
    return {name: library or f"libaon-provider-{name}.so" for name, library in known}


class Docs(unittest.TestCase):
    def test_they_are_short(self):
        for path in DOCS:
            line_count = len(path.read_text().splitlines())
            self.assertTrue(60 <= line_count <= 120, f"{path.name}: {line_count} lines")
        for path in DECISIONS:
            self.assertLessEqual(len(path.read_text().splitlines()), 40, path.name)
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), 100)

    def test_each_says_what_checks_it(self):
        for path in DOCS:
            last_paragraph = path.read_text().rstrip().split("\n\n")[-1]
            self.assertTrue(last_paragraph.startswith("Checked by: "), path.name)

    def test_the_table_of_providers_has_the_names_of_the_options(self):
        table = (ROOT / "README.md").read_text().split("| provider |")[1].split("\n\n")[0]
        cells = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
        named = {name for cell in cells if not cell.startswith("(") for name in cell.split(", ")}
        self.assertEqual(named - {""}, set(known_providers()) | {"example"})

    def test_the_demo_builds_all_that_its_output_names(self):
        """README shows what providers say: one that is not built says nothing."""
        demo = (ROOT / "scripts/demo").read_text()
        self.assertIn("aon-providers", re.search(r'build" release (.*)', demo).group(1).split())
        libraries = set(known_providers().values())
        commands = subprocess.run(["ninja", "-C", os.environ["AON_BUILD"], "-t", "commands",
                                   "aon-providers"], capture_output=True, text=True, check=True)
        built = set(re.findall(r" -o \S*?([\w-]+\.so)\b", commands.stdout))
        self.assertEqual(libraries - built, set())

    def test_they_name_only_what_exists(self):
        for path in DOCS + DECISIONS + TOP:
            for name in PATH.findall(path.read_text()):
                self.assertTrue((ROOT / name).exists(), f"{path.name} names {name}")
            for name in LINK.findall(path.read_text()):
                self.assertTrue((path.parent / name).exists(), f"{path.name} links {name}")

    def test_sources_name_only_what_exists(self):
        tests = {path.name for path in (ROOT / "tests").rglob("*_test.*")}
        for path in SOURCES:
            text = re.sub(r"(?m)^\s*#\s*include.*$", "", path.read_text())
            for name in NAMED.findall(text):
                self.assertTrue((ROOT / name).exists(), f"{path} names {name}")
            for name in NAMED_TEST.findall(text):
                self.assertIn(name, tests, f"{path} names {name}")

    def test_the_page_of_providers_has_every_field(self):
        page = (ROOT / "docs/provider-abi.md").read_text()
        header = (ROOT / "core/include/aon/provider.h").read_text()
        fields = re.findall(r"AON_PROVIDER_FIELD_\(aon_\w+_api, (\w+), \d+\)", header)
        self.assertGreater(len(fields), 30)
        for field in fields:
            self.assertRegex(page, rf"\b{field}\b", "provider-abi.md")

    def test_the_page_of_providers_has_every_host_that_there_is(self):
        """A host that nobody is says so."""
        loaders = "".join(path.read_text() for path in SOURCES if path.relative_to(ROOT).parts[0]
                          in ("core", "tools") and path.suffix == ".cpp"
                          and path.parent.name != "provider")
        rows = re.findall(r"(?m)^\| `(AON_HOST_\w+)` \|(.*)$",
                          (ROOT / "docs/provider-abi.md").read_text())
        self.assertEqual(len(rows), 2)
        for host, row in rows:
            self.assertNotEqual(host in loaders, "reserved" in row, host)

    def test_the_drawing_of_folders_has_each(self):
        page = (ROOT / "docs/architecture.md").read_text()
        drawn = page.split("## Folders")[1].split("```")[1]
        for part in ("core", "plugins", "writers"):
            for folder in {path.parent for path in SOURCES if path.is_relative_to(ROOT / part)}:
                name = folder.relative_to(ROOT / part).parts
                if name:
                    self.assertRegex(drawn, rf"\b{name[0]}\b", f"architecture.md: {part}/{name[0]}")

    def test_the_page_of_records_has_every_kind(self):
        header = (ROOT / "core/include/aon/record.h").read_text()
        listed = header.split("enum class RecordKind")[1].split("};")[0]
        kinds = re.findall(r"\b(k\w+) = \d+", listed)
        self.assertGreater(len(kinds), 15)
        page = (ROOT / "docs/records.md").read_text()
        for kind in set(kinds) - {"kNone"}:
            self.assertIn(f"`{kind}`", page)

    def test_code_is_an_excerpt_of_a_file(self):
        for path in DOCS + DECISIONS + TOP:
            for language, file, code in BLOCK.findall(path.read_text()):
                if language in DRAWN:
                    continue
                self.assertTrue(file, f"{path.name}: say which file this is from: {code[:60]!r}")
                self.assertIn(code.strip(), (ROOT / file).read_text(), f"{path.name}: {file}")

    def test_decisions_are_numbered_without_gaps(self):
        numbers = [int(path.name[:3]) for path in DECISIONS]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))


if __name__ == "__main__":
    unittest.main()
