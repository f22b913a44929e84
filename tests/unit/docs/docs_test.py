"""The documents are short, name only files that exist, say what checks them, and every block of
code in them is an excerpt of a file that is compiled or run."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCS = sorted((ROOT / "docs").glob("*.md"))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
TOP = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FOLDERS = "core|plugins|bindings|writers|launcher|tools|tests|docs|examples|scripts|cmake"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*\w/?)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
BLOCK = re.compile(r"^```(\S*)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
DRAWN = {"", "text", "console", "sh"}  # languages that are no source code of ours


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
        code = (ROOT / "core/provider/names.cpp").read_text()
        names = code.split("kKnownNames{{")[1].split("}};")[0]
        known = set(re.findall(r'\{"([a-z-]+)"', names)) | {"example"}
        self.assertEqual(named - {""}, known)

    def test_they_name_only_what_exists(self):
        for path in DOCS + DECISIONS + TOP:
            for name in PATH.findall(path.read_text()):
                self.assertTrue((ROOT / name).exists(), f"{path.name} names {name}")
            for name in LINK.findall(path.read_text()):
                self.assertTrue((path.parent / name).exists(), f"{path.name} links {name}")

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
