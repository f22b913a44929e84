"""The flame graph of `aon export --folded`, opened by speedscope in a browser without a display.

    speedscope_test.py PICTURE.png FILE.folded    draws it instead

Needs chromium (of the distribution) and speedscope (`npm install speedscope`, in a folder named by
AON_SPEEDSCOPE or globally); skipped without them.
"""
import base64
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from sampling import HOT, UNBOUNDED, skip_without_perf

import aon_test
from aon_test import SKIPPED, profile, run


def speedscope():
    """index.html of the installed speedscope, or None."""
    folders = [os.environ.get("AON_SPEEDSCOPE")]
    if shutil.which("npm"):
        done = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, timeout=60)
        folders.append(done.stdout.strip())
    for folder in filter(None, folders):
        for below in ("speedscope", "node_modules/speedscope", "."):
            page = pathlib.Path(folder) / below / "dist" / "release" / "index.html"
            if page.exists():
                return page.resolve()
    return None


def browse(page, script, view, *options):
    """What the browser shows of `script`'s profile; its document as text."""
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
               "--enable-unsafe-swiftshader", "--allow-file-access-from-files",
               "--window-size=1200,420", "--virtual-time-budget=15000", *options,
               f"file://{page}#localProfilePath={script}&view={view}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def as_script(folded, script):
    """As the command `speedscope FILE` hands a file to the page."""
    data = base64.b64encode(folded.read_bytes()).decode()
    script.write_text(f"speedscope.loadFileFromBase64({json.dumps(folded.name)}, "
                      f"{json.dumps(data)})")


class FlameGraph(aon_test.TestCase):
    def test_is_drawn_with_its_functions(self):
        output, stacks = self.folder / "out", self.folder / "hot.folded"
        self.assert_exit(profile(1, output, HOT, 1000, options=(*UNBOUNDED, "--sampling", "997")))
        self.assert_exit(run(["aon", "export", output, "--folded", stacks]))
        script = self.folder / "profile.js"
        as_script(stacks, script)
        document = browse(speedscope(), script, "sandwich", "--dump-dom")
        text = [html.unescape(part).strip() for part in re.split(r"<[^>]*>", document)]
        for shown in ("hot.folded", "hot", "cold", "work", "main"):
            self.assertIn(shown, text)


def draw(picture, folded):
    script = picture.resolve().with_suffix(".js")
    as_script(folded, script)
    browse(speedscope(), script, "left-heavy", f"--screenshot={picture.resolve()}")
    script.unlink()


if __name__ == "__main__":
    if shutil.which("chromium") is None or speedscope() is None:
        print("skipped: no chromium, or no speedscope: apt-get install chromium; "
              "npm install -g speedscope", file=sys.stderr)
        sys.exit(SKIPPED)
    if len(sys.argv) == 3 and not sys.argv[1].startswith("-"):
        draw(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
        sys.exit(0)
    skip_without_perf()
    aon_test.unittest.main()
