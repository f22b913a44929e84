#!/usr/bin/python3
"""Calls as much of MPI as mpi4py gives, on two ranks, and checks what it does: `every.py FOLDER`.
Says nothing but "ok"."""
import sys

from mpi4py import MPI

if sys.argv[1] == "child":
    MPI.Comm.Get_parent().Disconnect()
    sys.exit()

import memory  # noqa: E402
import messages  # noqa: E402
import objects  # noqa: E402

messages.all_of_them()
objects.all_of_them()
memory.all_of_them(sys.argv[1])
print("ok")
