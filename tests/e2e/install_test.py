"""`cmake --install` lays out a tree that works wherever it is moved to, and cpack makes packages of
it: a tarball that needs no library of the machine but the C library, and a Debian package."""
import os
import pathlib
import re
import shutil
import unittest

from aon_test import BUILD, SOURCE, TestCase, environment, ledger, main, run

EXPECTED = [
    "bin/aon-run",
    "bin/aon",
    "lib/libaon.so",
    "lib/libaon-mpi.so",
    "bin/aon-agent",
    "bin/aon-node",
    "share/aon/systemd/aon-node.service",
    "share/aon/systemd/install",
    "include/aon/annotate.h",
    "include/aon/annotate.hpp",
    "include/aon/gpu.h",
    "include/aon/provider.h",
    "lib/libaon-annotate.a",
    "lib/libaon-nvtx.so",
    "lib/libaon-cupti.so",
    "lib/libnccl-profiler-aon.so",
    "lib/aon/python/aon/__init__.py",
    "share/aon/fortran/aon.f90",
    "include/aon/record.h",
    "lib/cmake/aon/aon-config.cmake",
    "bin/aon-task",
    "bin/aon-canary",
    "bin/aon-canary-program",
    "share/aon/slurm/aon-taskprolog.sh",
    "share/aon/slurm/aon-prolog.sh",
    "share/aon/slurm/aon-epilog.sh",
    "share/aon/slurm/aon-finish.sh",
    "share/aon/slurm/spank_aon.c",
    "share/aon/slurm/README.md",
    "share/bash-completion/completions/aon-run",
    "share/bash-completion/completions/aon",
    "share/man/man1/aon-run.1",
    "share/man/man1/aon.1",
    "share/man/man8/aon-node.8",
]
# Of the machine; the tarball brings its own.
LIBRARIES = ("libopen-trace-format2.so.10", "libhdf5_serial.so.103", "libfmt.so.9", "libdw.so.1")
USER_PROJECT = """cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package(aon REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE aon::annotate)
"""
USER_PROGRAM = """#include <aon/annotate.h>
int main(void) {
  AON_REGION_BEGIN("mine");
  AON_REGION_END("mine");
  return 42;
}
"""


class Install(TestCase):
    def setUp(self):
        super().setUp()
        first = self.folder / "first place"
        self.assert_exit(run(["cmake", "--install", BUILD, "--prefix", first]))
        self.prefix = self.folder / "moved, with a space"
        shutil.move(first, self.prefix)

    def test_the_layout_is_complete(self):
        missing = [name for name in EXPECTED if not (self.prefix / name).exists()]
        self.assertEqual(missing, [])

    def test_the_unit_is_one_that_systemd_takes(self):
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            self.skipTest("no systemd-analyze (package systemd)")
        unit = self.prefix / "share/aon/systemd/aon-node.service"
        text = unit.read_text()
        # It names where it was installed; this tree was moved since.
        program = re.search(r'^ExecStart="(.+)"$', text, re.M)[1]
        self.assertTrue(program.endswith("/first place/bin/aon-node"), program)
        self.assert_others_make_way(text, program)
        os.makedirs(os.path.dirname(program))
        os.symlink(self.prefix / "bin/aon-node", program)
        process = run([analyze, "verify", "--man=no", unit])
        self.assert_exit(process)
        self.assertNotIn("aon-node", process.stderr)

    def assert_others_make_way(self, text, program):
        """A service that Slurm's Prolog has started, so that its socket is not taken from it."""
        self.assertIn(f'\nExecStartPre=-+"{program}" --end\n', text)
        # With DynamicUser= it would put the socket where no user may look.
        self.assertNotIn("\nRuntimeDirectoryPreserve=", text)

    def test_the_unit_of_a_moved_tree_is_made_by_a_script(self):
        done = run([self.prefix / "share/aon/systemd/install", "--print"])
        self.assert_exit(done)
        self.assertIn(f'ExecStart="{self.prefix}/bin/aon-node"\n', done.stdout)
        self.assert_others_make_way(done.stdout, self.prefix / "bin/aon-node")
        analyze = shutil.which("systemd-analyze")
        if analyze is not None:
            unit = self.folder / "aon-node.service"
            unit.write_text(done.stdout, encoding="utf-8")
            process = run([analyze, "verify", "--man=no", unit])
            self.assert_exit(process)
            self.assertNotIn("aon-node", process.stderr)
        # By these nothing is installed.
        place = pathlib.Path("/etc/systemd/system/aon-node.service")
        before = place.exists() and place.read_text()
        script = self.prefix / "share/aon/systemd/install"
        for word, code, says in (("--help", 0, "usage: install"), ("--bogus", 2, "see install")):
            done = run([script, word])
            self.assertEqual(done.returncode, code, word)
            self.assertIn(says, done.stdout + done.stderr)
        self.assertEqual(place.exists() and place.read_text(), before)
        odd = self.folder / "50%"
        shutil.move(self.prefix, odd)
        done = run([odd / "share/aon/systemd/install", "--print"])
        self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_no_library_is_looked_for_in_the_working_directory(self):
        """Also of what stands in the build tree: an empty word of a RUNPATH is that directory."""
        files = [path for name in ("bin", "lib") for path in (self.prefix / name).rglob("*")]
        paths = 0
        for path in files:
            for folder in (self.prefix, BUILD):
                dynamic = run(["readelf", "-d", folder / path.relative_to(self.prefix)]).stdout
                for words in re.findall(r"Library r(?:un)?path: \[(.*)\]", dynamic):
                    paths += 1
                    self.assertTrue(all(word.startswith(("/", "$ORIGIN")) for word in
                                        words.split(":")), (folder, path, words))
        self.assertGreater(paths, 20)

    def test_nothing_points_back_to_the_build_tree(self):
        for path in (self.prefix / "lib").rglob("*.so"):
            dynamic = run(["readelf", "-d", path]).stdout
            self.assertNotIn(str(BUILD), dynamic, path)

    def test_the_example_is_profiled_from_a_moved_tree(self):
        program = self.folder / "heat2d"
        shutil.copy(BUILD / "bin" / "heat2d", program)
        output = self.folder / "job"
        path = f"{self.prefix}/bin:{environment()['PATH'].split(':', 1)[1]}"
        command = ["mpirun", "-n", 2, "aon-run", "-o", output, program, "--size", 32, "--steps", 20]
        self.assert_exit(run(command, env=environment(PATH=path)))
        document = ledger(output)
        self.assertEqual(sorted(r["rank"] for r in document["ranks"]), [0, 1])
        self.assert_law(document)
        self.assertTrue((output / "traces.otf2").exists())
        self.assert_exit(run([self.prefix / "bin" / "aon", "info", output]))

    def test_a_project_finds_the_headers_by_the_cmake_package(self):
        project = self.folder / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(USER_PROJECT, encoding="utf-8")
        (project / "user.c").write_text(USER_PROGRAM, encoding="utf-8")
        built = project / "built"
        where = f"-DCMAKE_PREFIX_PATH={self.prefix}"
        self.assert_exit(run(["cmake", "-S", project, "-B", built, where], cwd=project))
        self.assert_exit(run(["cmake", "--build", built]))
        output = self.folder / "job"
        command = [self.prefix / "bin" / "aon-run", "-o", output, built / "user"]
        self.assert_exit(run(command), 42)
        self.assertEqual(ledger(output)["ranks"][0]["emitted"], 2)

    def test_the_manual_and_the_completion_have_every_option(self):
        said = run([self.prefix / "bin" / "aon-run", "--help"]).stdout.split()
        options = {word.rstrip(",") for word in said if word.startswith("--") and word != "--"}
        self.assertGreater(len(options), 15)
        page = self.prefix / "share" / "man" / "man1" / "aon-run.1"
        text = page.read_text().replace("\\-", "-")
        completion = self.prefix / "share" / "bash-completion" / "completions" / "aon-run"
        words = completion.read_text().split()
        for option in options - {"[--]"}:
            self.assertIn(f"{option}\\fR", text)
            self.assertIn(option, [word.strip("'") for word in words])
        script = f"source '{completion}'; COMP_WORDS=(aon-run --call); COMP_CWORD=1; _aon_run"
        done = run(["bash", "-c", f"{script}; echo ${{COMPREPLY[@]}}"])
        self.assertEqual((done.stdout, done.stderr), ("--call-graph\n", ""))

    def test_the_manual_has_every_exit_code(self):
        page = (self.prefix / "share" / "man" / "man1" / "aon.1").read_text()
        codes = re.findall(r"^/// \| (\d) +\| (.*)", (SOURCE / "tools/command.h").read_text(), re.M)
        self.assertGreater(len(codes), 5)
        for code, meaning in codes:
            self.assertEqual(f"\\fB{code}\\fR" in page, "to the agent" not in meaning, code)


class Packages(TestCase):
    """What cpack makes of the build."""

    def pack(self, generator):
        """The package."""
        config = BUILD / "CPackConfig.cmake"
        self.assert_exit(run(["cpack", "-G", generator, "--config", config, "-B", self.folder]))
        ending = {"TGZ": "*.tar.gz", "DEB": "*.deb"}[generator]
        (package,) = self.folder.glob(ending)
        return package

    @unittest.skipUnless(os.geteuid() == 0, "hiding the build tree needs root")
    def test_the_tarball_works_without_build_tree_and_libraries(self):
        package = self.pack("TGZ")
        self.assert_exit(run(["tar", "-xzf", package, "-C", self.folder]))
        prefix = self.folder / "site, shared"
        (self.folder / package.name.removesuffix(".tar.gz")).rename(prefix)
        self.assert_names_nothing_of_the_build(prefix)
        unit = (prefix / "share/aon/systemd/aon-node.service").read_text()
        self.assertIn('\nExecStart="/opt/aon/bin/aon-node"\n', unit)
        self.assertIn('\nExecStartPre=-+"/opt/aon/bin/aon-node" --end\n', unit)
        program = self.folder / "heat2d"
        shutil.copy(BUILD / "bin" / "heat2d", program)
        hidden = [f"mount -t tmpfs none '{BUILD}'"]
        for name in LIBRARIES:
            hidden.append(f"mount --bind /dev/null $(realpath /usr/lib/x86_64-linux-gnu/{name})")
        script = " && ".join([*hidden, "! ls /usr/lib/aon 2>/dev/null", 'exec "$@"'])
        output = self.folder / "job"
        words = ["mpirun", "-n", 2, prefix / "bin" / "aon-run", "-o", output, program]
        hide = ["unshare", "--mount", "sh", "-c", script, "sh"]
        self.assert_exit(run([*hide, *words, "--size", 32, "--steps", 20]))
        document = ledger(output)
        self.assertEqual(sorted(r["rank"] for r in document["ranks"]), [0, 1])
        self.assertEqual(document["ranks"][0]["providers"]["mpi"]["state"], "on")
        self.assertTrue((output / "traces.otf2").exists())
        self.assert_exit(run([*hide, prefix / "bin" / "aon", "info", output]))

    def assert_names_nothing_of_the_build(self, prefix):
        """Neither the build tree nor the folder in which cpack staged the package."""
        for path in prefix.rglob("*"):
            if path.is_symlink() or not path.is_file():
                continue
            for folder in (BUILD, SOURCE, self.folder):
                self.assertFalse(str(folder).encode() in path.read_bytes(), f"{folder} in {path}")

    def test_the_debian_package_names_what_it_needs(self):
        package = self.pack("DEB")
        needs = run(["dpkg-deb", "--field", package, "Depends"]).stdout
        for name in ("libc6", "libhwloc15", "libhdf5", "libopen-trace-format2"):
            self.assertIn(name, needs)
        names = run(["dpkg-deb", "--contents", package]).stdout
        for name in EXPECTED:
            self.assertIn(f"./usr/{name}\n", names)
        self.assertNotIn("lib/aon/private", names)
        unit = "./usr/share/aon/systemd/aon-node.service"
        done = run(["sh", "-c", f"dpkg-deb --fsys-tarfile '{package}' | tar -xO {unit}"])
        self.assertIn('\nExecStart="/usr/bin/aon-node"\n', done.stdout)
        self.assertIn('\nExecStartPre=-+"/usr/bin/aon-node" --end\n', done.stdout)
        # Unpacked elsewhere it works as well: an admin may look at it before it is installed.
        tree = self.folder / "unpacked"
        self.assert_exit(run(["dpkg-deb", "--extract", package, tree]))
        output = self.folder / "job"
        words = ["mpirun", "-n", 2, tree / "usr" / "bin" / "aon-run", "-o", output]
        self.assert_exit(run([*words, BUILD / "bin" / "heat2d", "--size", 32, "--steps", 20]))
        document = ledger(output)
        self.assertEqual(sorted(r["rank"] for r in document["ranks"]), [0, 1])
        self.assertTrue((output / "traces.otf2").exists())

    @unittest.skipUnless(shutil.which("tclsh"), "tclsh is missing: run scripts/setup")
    def test_the_module_leads_to_the_installation(self):
        """The modulefile, read by Tcl with the commands that environment modules give it."""
        prefix = self.folder / "site" / "aon"
        self.assert_exit(run(["cmake", "--install", BUILD, "--prefix", prefix]))
        (module,) = (prefix / "share" / "modulefiles" / "aon").iterdir()
        commands = """
            proc module-whatis {text} {}
            proc conflict {name} {}
            proc prepend-path {name value} { puts "$name=$value" }
            proc setenv {name value} { puts "$name=$value" }
            set ModulesCurrentModulefile [lindex $argv 0]
            source [lindex $argv 0]
            ModulesHelp"""
        script = self.folder / "load.tcl"
        script.write_text(commands)
        # A site links it into the folder of its own modules.
        linked = self.folder / "modules" / "aon" / "new"
        linked.parent.mkdir(parents=True)
        linked.symlink_to(module)
        done = run(["tclsh", script, linked])
        self.assert_exit(done)
        self.assertEqual(done.stdout, run(["tclsh", script, module]).stdout)
        loaded = dict(line.split("=", 1) for line in done.stdout.splitlines())
        self.assertEqual(loaded["AON_ROOT"], str(prefix))
        self.assertTrue((pathlib.Path(loaded["PATH"]) / "aon-run").exists())
        self.assertTrue((pathlib.Path(loaded["MANPATH"]) / "man1" / "aon-run.1").exists())
        self.assertEqual(loaded["CMAKE_PREFIX_PATH"], str(prefix))


if __name__ == "__main__":
    main()
