#!/usr/bin/python3
"""The C libraries that the application's code runs with (core/include/aon/old_libc.h): glibc from
2.17 on, whatever the glibc it was built with; and what is preloaded ends no program where another
one has less.

    old_libc_test.py COMPILER LIBRARY...
"""
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADER = ROOT / "core" / "include" / "aon" / "old_libc.h"
COMPILER = sys.argv.pop(1)
LIBRARIES = []
while len(sys.argv) > 1 and sys.argv[-1].endswith(".so"):
    LIBRARIES.append(pathlib.Path(sys.argv.pop()))

NEWEST = (2, 17)
PRELOADED = ("libaon.so", "libaon-mpi.so")
# Before 2.34 they were in libdl, libpthread and librt, which a program need not have loaded.
ELSEWHERE = re.compile(r"(dl(addr1?|close|error|info|m?open|v?sym)|pthread_|sem_|timer_|mq_|aio_|"
                       r"lio_|shm_)\w*$")  # fmt: skip
# Of these libc had stubs.
STUBS = re.compile(r"pthread_(attr_(init|destroy|[gs]et(detachstate|sched\w+|inheritsched|scope))|"
                   r"cond_(init|destroy|wait|timedwait|signal|broadcast)|condattr_(init|destroy)|"
                   r"equal|exit|[gs]etschedparam|mutex_(init|destroy|lock|unlock)|self|"
                   r"setcancel(state|type))$")  # fmt: skip


def output_of(*command):
    done = subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True)
    return done.stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-dW", library))


def undefined(library):
    """{name: (version or empty, is weak)} of what the library imports."""
    found = {}
    for line in output_of("readelf", "--dyn-syms", "-W", library).splitlines():
        words = line.split()
        if len(words) > 7 and words[6] == "UND":
            name, _, version = words[7].partition("@")
            found[name] = (version.lstrip("@"), words[4] == "WEAK")
    return found


def is_new(version):
    number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
    if number is None:
        return version != ""  # GLIBC_PRIVATE, GLIBC_ABI_...
    return (int(number[1]), int(number[2])) > NEWEST


def new_versions(library):
    """Versions above NEWEST that the library needs, by its table of them: also those that belong
    to no symbol."""
    versions = re.findall(r"Name: (GLIBC_\S+)", output_of("readelf", "-VW", library))
    return sorted({version for version in versions if is_new(version)})


class OldLibc(unittest.TestCase):
    """The dynamic sections and symbols of the libraries."""

    def test_the_libraries_are_there(self):
        self.assertLessEqual(set(PRELOADED), {library.name for library in LIBRARIES})

    @unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "the header has no versions")
    def test_need_no_version_above_2_17(self):
        for library in LIBRARIES:
            self.assertEqual(new_versions(library), [], library.name)

    def test_name_no_loader(self):
        for library in LIBRARIES:
            loaders = [name for name in needed(library) if name.startswith("ld")]
            self.assertEqual(loaders, [], f"{library.name}: musl has no such file")

    def test_what_is_preloaded_can_do_without_libdl_and_libpthread(self):
        for library in LIBRARIES:
            if library.name not in PRELOADED:
                continue
            strong = [name for name, (_, is_weak) in undefined(library).items()
                      if not is_weak and ELSEWHERE.match(name) and not STUBS.match(name)]
            self.assertEqual(strong, [], f"{library.name}: #pragma weak NAME, and ask for it")

    def test_what_is_preloaded_calls_nothing_fortified(self):
        for library in LIBRARIES:
            strong = [name for name, (_, is_weak) in undefined(library).items()
                      if not is_weak and name.endswith("_chk") and library.name in PRELOADED]
            self.assertEqual(strong, [], f"{library.name}: musl has none of it")

    @unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "the header has no versions")
    def test_the_header_takes_the_old_ones_from_a_newer_glibc_as_well(self):
        """strtol() is another function since glibc 2.38, by a macro of its headers."""
        source = ('extern "C" long __isoc23_strtol(const char*, char**, int);\n'
                  'extern "C" void* dlsym(void*, const char*);\n'
                  'long f(const char* t) { dlsym(0, t); return __isoc23_strtol(t, 0, 10); }\n')
        with tempfile.TemporaryDirectory(prefix="aon-test-") as folder:
            path = pathlib.Path(folder)
            (path / "new.cpp").write_text(source)
            output_of(COMPILER, "-O2", "-fPIC", "-shared", "-nostdlib", "-include", HEADER,
                      path / "new.cpp", "-lc", "-o", path / "new.so")
            versions = {name: version for name, (version, _) in undefined(path / "new.so").items()}
        self.assertIn(versions["strtol"], ("GLIBC_2.2.5", "GLIBC_2.17"))
        self.assertIn(versions["dlsym"], ("GLIBC_2.2.5", "GLIBC_2.17"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
