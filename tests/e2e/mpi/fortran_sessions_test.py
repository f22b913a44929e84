#!/usr/bin/python3
"""Sessions under a library whose C sessions are pointers, as Open MPI 5's are: a made-up one, for
no other was there.

    fortran_sessions_test.py PROGRAMS_FOLDER [unittest arguments]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import ring_file as rf  # noqa: E402
from aon_test import BUILD, TestCase, environment, run  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(".")


class Sessions(TestCase):
    """Programs that never call MPI_Init."""

    def record(self, program):
        preload = BUILD / "lib" / "libaon-mpi.so"
        self.assert_exit(run([PROGRAMS / program]))
        env = environment(LD_PRELOAD=preload, AON_OUTPUT=self.folder)
        self.assert_exit(run([PROGRAMS / program], env=env))
        (file,) = rf.read_all(self.folder).values()
        return file

    def test_an_isendrecv_tells_what_came(self):
        """Whether a status can be believed is asked of the session's first communicator."""
        file = self.record("session_exchange")
        (call,) = file.calls("MPI_Isendrecv")
        self.assertEqual(file.communicators[call.a32].unseen_count, 0)
        ends = [(r.flags & (rf.OUTGOING | rf.INCOMING), r.a32, r.peer, r.tag, r.a64)
                for r in file.records if r.kind == rf.COMPLETION]  # fmt: skip
        self.assertEqual(ends, [(rf.OUTGOING, call.a32, 0, 3, 5), (rf.INCOMING, call.a32, 0, 3, 5)])

    def test_sessions_of_fortran_are_converted(self):
        file = self.record("fortran_sessions")
        self.assertEqual(file.providers, [(1, "mpi", "", "")])
        self.assertEqual([i[:3] for i in file.identities], [(0, 1, 0), (0, 1, 1)])
        for name, count in (("MPI_Session_init", 2), ("MPI_Session_finalize", 2),
                            ("MPI_Group_from_session_pset", 1), ("MPI_Barrier", 1),
                            ("MPI_Comm_create_from_group", 1)):
            self.assertEqual(len(file.calls(name)), count, name)
        (barrier,) = file.calls("MPI_Barrier")
        made = file.communicators[barrier.a32]
        self.assertEqual((made.size, made.rank, made.unseen_count), (1, 0, 0))


if __name__ == "__main__":
    unittest.main()
