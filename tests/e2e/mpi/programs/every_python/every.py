#!/usr/bin/python3
"""Calls all of MPI that mpi4py gives, on two ranks, and checks what it does: `every.py FOLDER
[abort]`. Says nothing but "ok"."""
import sys

import mpi4py

mpi4py.rc.initialize = "abort" not in sys.argv

from mpi4py import MPI  # noqa: E402

if sys.argv[1] == "child":
    MPI.Comm.Get_parent().Disconnect()
    sys.exit()

if sys.argv[2:] == ["abort"]:
    MPI.Init()
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.Get_rank() == 1:
        MPI.COMM_WORLD.Abort(7)
    MPI.COMM_WORLD.Probe()

import memory  # noqa: E402
import messages  # noqa: E402
import objects  # noqa: E402

messages.all_of_them()
objects.all_of_them()
memory.all_of_them(sys.argv[1])
print("ok")
