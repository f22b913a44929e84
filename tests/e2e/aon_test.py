"""What every end-to-end test shares: running programs with and without AON, always under a time
limit and a file size limit, and reading the ledger.

A test takes the build from AON_BUILD and the source tree from AON_SOURCE, as ctest sets them; by
hand the defaults below do. Folders of failed tests are kept when AON_KEEP is set.
"""
import atexit
import fnmatch
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

SOURCE = pathlib.Path(os.environ.get("AON_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("AON_BUILD", SOURCE / "build" / "release"))
PYTHON = "/usr/bin/python3"


def _is_sanitized():
    cache = BUILD / "CMakeCache.txt"
    pattern = re.compile(r"^AON_SANITIZE:\w+=.+$", re.MULTILINE)
    return cache.exists() and pattern.search(cache.read_text()) is not None


# A sanitized program needs terabytes of address space and its runtime first in LD_PRELOAD.
IS_SANITIZED = _is_sanitized()
MPI = os.environ.get("AON_TEST_MPI", "openmpi")  # the MPI library of the programs
MPI_LAUNCHER = {"openmpi": "mpirun", "mpich": "mpiexec.hydra"}[MPI]
MPI_COMPILER = {"openmpi": "mpicc", "mpich": "mpicc.mpich"}[MPI]
# What a node needs of AON, and a program for it.
PARTS = ["bin/aon", "bin/aon-agent", "bin/aon-canary", "bin/aon-canary-program", "bin/aon-node",
         "bin/aon-run", "bin/aon-task", "lib/libaon.so", "lib/libaon-mpi.so", "lib/aon/providers",
         "share/aon/slurm"]
# otf2-print clears 180 MiB of tables when it starts: a third of the time in large pages.
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
SKIPPED = 77  # exit code that ctest counts as skipped (aon_script_test)


def is_of_share(name, share):
    """Whether the test `name` is of `share`, "I/N": each is of one of 0/N to N-1/N."""
    number, count = map(int, share.split("/"))
    return zlib.crc32(name.encode()) % count == number


def load_share(suite):
    """The tests of `suite`, those of a class together, that are of AON_TEST_SHARE; all without. A
    file without any is skipped."""
    share = os.environ.get("AON_TEST_SHARE")
    if not share:
        return suite
    program = " ".join(pathlib.Path(word).name for word in sys.argv)
    mine = unittest.TestSuite(
        unittest.TestSuite(t for t in tests if is_of_share(f"{program} {MPI} {t.id()}", share))
        for tests in suite)
    print(f"share {share}: {mine.countTestCases()} of {suite.countTestCases()} tests")
    if mine.countTestCases() == 0:
        sys.exit(SKIPPED)
    return mine


class Loader(unittest.TestLoader):
    """unittest.main() of a file, or of classes by name, runs the share; of tests by name all."""

    def loadTestsFromModule(self, module, *args, **more):  # noqa: N802
        return load_share(super().loadTestsFromModule(module, *args, **more))

    def loadTestsFromNames(self, names, module=None):  # noqa: N802
        suite = super().loadTestsFromNames(names, module)
        return suite if any("." in name for name in names) else load_share(suite)


unittest.defaultTestLoader.__class__ = Loader


def skip_without_share():
    """Ends a file of which no wanted test is of the share, before it asks what this machine
    allows."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    loader, main_module = unittest.defaultTestLoader, sys.modules["__main__"]
    if names:
        loader.loadTestsFromNames(names, main_module)
    else:
        loader.loadTestsFromModule(main_module)


def main():
    """unittest.main() for a file of which some tests need what a machine may lack: where one was
    skipped ctest counts the file as skipped, not as passed."""
    result = unittest.main(exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped else 0)


def copy_installation(prefix, more=()):
    """Copies what a node needs of AON, and `more` parts of the build; returns `prefix`."""
    for part in [*PARTS, *more]:
        target = prefix / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (BUILD / part).is_dir():
            shutil.copytree(BUILD / part, target)
        else:
            shutil.copy2(BUILD / part, target)
    return prefix


def build_for_others(more=()):
    """BUILD, or where other users may not enter it, as below /root, a copy that they may read."""
    if all(folder.stat().st_mode & 1 for folder in [BUILD, *BUILD.parents]):
        return BUILD
    folder = pathlib.Path(tempfile.mkdtemp(prefix="aon-build-"))
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return copy_installation(folder, more)


def open_mpi_windows():
    """OMPI_MCA_osc. Open MPI 4's osc/rdma needs copies between processes by the kernel, which tests
    do without (and not every sandbox allows); later ones have nothing else."""
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return "sm,pt2pt" if "(Open MPI) 4." in said else "sm,rdma"


def environment(**changes):
    """The caller's environment without AON's variables, with what mpirun needs to run here, and
    with time for an agent that shares the machine with other tests. A value of None removes a
    variable."""
    result = {k: v for k, v in os.environ.items() if not k.startswith("AON_") and k != "LD_PRELOAD"}
    if os.geteuid() == 0:
        result["OMPI_ALLOW_RUN_AS_ROOT"] = result["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    result["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    result["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
    result["AON_ATTACH_MS"] = "10000"
    # Lines of the C library are half of the work of an assembly; tests of symbols say where.
    result["AON_DEBUG_DIRECTORIES"] = "/none"
    result["PATH"] = f"{BUILD}/bin:{result['PATH']}"
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = str(value)
    return result


def _process(folder):
    """(parent, state) of /proc/PID; None where it has gone."""
    try:
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[0]


def family(pid):
    """What process `pid` and all below it do, a line each: pid, parent, state, where in the kernel,
    command. For the message of a test that waited in vain."""
    found = {int(f.name): _process(f) for f in pathlib.Path("/proc").iterdir() if f.name.isdigit()}
    members, lines = {pid}, []
    for _ in found:  # a child may have a lower number than its parent
        more = {p for p, known in found.items() if known and known[0] in members} - members
        if not more:
            break
        members |= more
    for one in sorted(p for p in members if found.get(p)):
        texts = []
        for name in ("wchan", "cmdline"):
            try:
                texts.append(pathlib.Path(f"/proc/{one}/{name}").read_text(errors="replace"))
            except OSError:
                texts.append("")
        parent, state = found[one]
        where, command = texts[0], texts[1].replace("\0", " ")[:200]
        lines.append(f"{one} of {parent} {state} {where} {command}")
    return "\n".join(lines)


def run(command, timeout_s=120, env=None, cwd=None, file_limit_bytes=2 << 30, **more):
    """Runs `command` to its end and returns its CompletedProcess with text output. Raises only on
    the time limit; then the whole process group is gone."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit_bytes, file_limit_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    env = env or environment()
    with subprocess.Popen(
        [str(c) for c in command],
        env={**env, **LARGE_PAGES} if command[0] == "otf2-print" else env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=limit,
        **more,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            what = f"{command} did not end in {timeout_s} s"
            print(f"{what}:\n{family(process.pid)}", file=sys.stderr)
            os.killpg(process.pid, 9)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def counted_calls(path):
    """The lines of an independent counter's file, in words; the first is a function's name. Those
    that the project leaves alone are not among them."""
    table = (SOURCE / "plugins" / "mpi" / "left_alone.table").read_text().splitlines()
    patterns = [line.partition(":")[0] for line in table if line and not line.startswith("#")]
    for words in map(str.split, pathlib.Path(path).read_text().splitlines()):
        if not any(fnmatch.fnmatchcase(words[0], pattern) for pattern in patterns):
            yield words


def mpirun(rank_count, *command, **more):
    """`mpirun -n rank_count command`, without AON unless the command names aon-run; for programs of
    MPICH with its mpiexec.hydra."""
    return run([MPI_LAUNCHER, "-n", rank_count, *command], **more)


def profile(rank_count, output, *command, options=(), **more):
    """`mpirun -n rank_count aon-run -o output [options] -- command`."""
    return mpirun(rank_count, "aon-run", "-o", output, *options, "--", *command, **more)


def wait_until(condition, seconds=20, what="condition"):
    """Waits for `condition()` to become true and returns its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"timed out: {what}")


def ledger(output):
    """The ledger of a job directory, as written."""
    return json.loads((pathlib.Path(output) / "aon.json").read_text())


class TestCase(unittest.TestCase):
    """A test with a folder of its own (`self.folder`) and the assertions that all share."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aon-test-"))
        if not os.environ.get("AON_KEEP"):
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def assert_exit(self, process, code=0):
        """Exit code as expected; otherwise the output is in the message."""
        command = " ".join(map(str, process.args))
        said = f"{command}\n{process.stdout[-4000:]}\n{process.stderr[-4000:]}"
        self.assertEqual(process.returncode, code, said)

    def assert_law(self, document):
        """emitted = spooled + lost, per thread and per rank, and losses add up to lost."""
        for rank in document["ranks"]:
            for thread in rank["threads"]:
                where = f"rank {rank['rank']} location {thread['location']}"
                self.assertEqual(thread["emitted"], thread["spooled"] + thread["lost"], where)
            for key in ("emitted", "spooled", "lost"):
                self.assertEqual(rank[key], sum(t[key] for t in rank["threads"]), key)
        total = sum(rank["lost"] for rank in document["ranks"])
        self.assertEqual(total, sum(loss["count"] for loss in document["losses"]), "losses")
