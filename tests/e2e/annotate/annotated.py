"""What tests of annotations share: a run that writes a ring file of its own (no agent), read back
record by record."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mpi"))

import readers  # noqa: E402,F401
import ring_file  # noqa: E402
from aon_test import BUILD, TestCase, environment, run  # noqa: E402

LIBAON = BUILD / "lib" / "libaon.so"
NO_VALUE, UNSIGNED, SIGNED, REAL, STEP, RANGE_START, RANGE_END = range(7)


def nesting(ring, slot=1):
    """The begins and ends of a thread as one text: "a( b( )b )a"."""
    parts = []
    for record in ring.records:
        if record.slot != slot:
            continue
        kind = ring_file.KINDS[record.kind]
        if kind == "begin":
            parts.append(record.name + "(")
        elif kind == "end":
            parts.append(")" + record.name)
    return " ".join(parts)


class RingTestCase(TestCase):
    """Runs programs with libaon.so preloaded, without an agent."""

    def rings(self, *command, **changes):
        """(process, [RingFile] in order of their files) of one run."""
        folder = self.folder / f"rings{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        changes = {"LD_PRELOAD": LIBAON, "AON_OUTPUT": folder, **changes}
        done = run(command, env=environment(**changes))
        paths = sorted(folder.rglob("fallback-*.ring"))
        return done, [ring_file.RingFile(path) for path in paths]

    def ring(self, *command, **changes):
        """The one ring file of a run that ends well."""
        done, rings = self.rings(*command, **changes)
        self.assert_exit(done)
        self.assertEqual(len(rings), 1)
        return rings[0]
