#!/usr/bin/python3
"""The canary by itself, without a cluster: when it switches AON off, and when it only tries again.

    canary_test.py [unittest arguments]
"""
import os
import unittest

import cluster  # noqa: F401  finds aon_test
from aon_test import BUILD, TestCase, copy_installation, environment, main, run

PROGRAM = BUILD / "bin" / "aon-canary-program"
MOST_LATE = 3


class Canary(TestCase):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # nobody tries it
        self.node = self.folder / "node"
        self.prefix = copy_installation(self.folder / "prefix")

    def script(self, path, text):
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def canary(self, *words, **changes):
        env = environment(AON_NODE_DIR=self.node, **changes)
        return run([self.prefix / "bin" / "aon-canary", *words], env=env, timeout_s=20)

    def late(self):
        """A program that does not end in time."""
        return self.script(self.folder / "late", f"sleep 3; exec {PROGRAM}")

    def assert_off(self, reason):
        self.assertIn(reason, (self.node / "off").read_text())
        self.assertEqual(sorted(p.name for p in self.node.iterdir()), ["canary", "off"])

    def test_it_needs_no_archive(self):
        (self.prefix / "bin" / "aon").unlink()
        self.script(self.prefix / "bin" / "aon", "sleep 100")
        self.assert_exit(self.canary())
        self.assertEqual([p.name for p in self.node.iterdir()], ["canary"])

    def test_help_and_wrong_arguments_try_nothing(self):
        for word, code, says in (("--help", 0, "usage: aon-canary"), ("-h", 0, "--again"),
                                 ("--bogus", 2, "'--bogus' is no argument")):
            done = self.canary(word)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(says, done.stdout + done.stderr)
            self.assertFalse(self.node.exists())

    def test_what_is_late_is_tried_again_a_few_times(self):
        late = self.late()
        for _ in range(MOST_LATE - 1):
            done = self.canary(AON_CANARY_PROGRAM=late)
            self.assert_exit(done, 1)
            self.assertIn("the next job tries again", done.stderr)
            self.assertFalse((self.node / "off").exists())
        self.assert_exit(self.canary(AON_CANARY_PROGRAM=late), 1)
        self.assert_off(f"did not end in time, {MOST_LATE} times")
        # From here on there is nothing to do until somebody asks for it.
        self.assert_exit(self.canary())
        self.assertTrue((self.node / "off").exists())
        self.assert_exit(self.canary("--again"))
        self.assertEqual([p.name for p in self.node.iterdir()], ["canary"])

    def test_one_that_lives_after_all_is_the_end_of_it(self):
        self.assert_exit(self.canary(AON_CANARY_PROGRAM=self.late()), 1)
        self.assert_exit(self.canary())
        self.assertEqual([p.name for p in self.node.iterdir()], ["canary"])
        before = (self.node / "canary").read_text()
        self.assertEqual(self.canary(AON_CANARY_PROGRAM="/none").stdout, "", "done since the boot")
        self.assertEqual((self.node / "canary").read_text(), before)

    def test_canaries_that_are_killed_count_as_late(self):
        tools = self.folder / "tools"
        tools.mkdir()
        words = 'case "$*" in *aon-run*) kill -KILL "$CANARY" ;; *) exec "$@" ;; esac'
        self.script(tools / "setpriv", f"while [ $1 != ${{1#-}} ]; do shift; done; {words}")
        self.script(tools / "timeout", 'kill -KILL "$CANARY"')  # not as root
        canary = f"CANARY=$$ PATH={tools}:$PATH exec {self.prefix}/bin/aon-canary"
        env = environment(AON_NODE_DIR=self.node)
        for _ in range(MOST_LATE):
            self.assertEqual(run(["sh", "-c", canary], env=env).returncode, -9)
            self.assertFalse((self.node / "off").exists())
        self.assert_exit(self.canary(), 1)
        self.assert_off("did not end in time")

    def test_a_wrong_end_or_a_wrong_word_is_no_second_try(self):
        for text, reason in (("exit 3", "ended with 3"), ("echo ha; exit 42", "something else"),
                             ("echo canary sings; exit 42", "nothing was recorded")):
            wrong = self.script(self.folder / "wrong", text)
            self.assert_exit(self.canary("--again", AON_CANARY_PROGRAM=wrong), 1)
            self.assert_off(reason)
            (self.node / "off").unlink()

    def test_the_word_of_an_administrator_stays(self):
        self.node.mkdir()
        (self.node / "off").write_text("mine\n", encoding="utf-8")
        self.assert_exit(self.canary())
        self.assertEqual((self.node / "off").read_text(), "mine\n")

    @unittest.skipUnless(os.geteuid() == 0, "only root has another user try it")
    def test_links_that_nobody_plants_lead_it_nowhere(self):
        victim = self.folder / "victim"
        victim.write_text("precious", encoding="utf-8")
        tools = self.folder / "tools"
        tools.mkdir()
        plant = f'for d in {self.node}/try.*; do $as ln -s {victim} "$d/errors"; done 2>/dev/null'
        as_nobody = 'as="setpriv --reuid=65534 --regid=65534 --clear-groups"'
        self.script(tools / "chown", f'/bin/chown "$@"; {as_nobody}; {plant}; true')
        path = f"{tools}:{environment()['PATH']}"
        self.assert_exit(self.canary(PATH=path))
        self.assertEqual(victim.read_text(), "precious")


if __name__ == "__main__":
    main()
