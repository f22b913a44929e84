"""Looks for MPI as mpi4py's wheels do, among what is loaded already, loads a library that is linked
to it, and calls that. Then looks for a function once more, as dlsym() says whether it is there.

    lacking.py LIBRARY
    lacking.py LIBRARY child        the same in a forked child
    lacking.py MPI_LIBRARY NAME     looks for a function of an MPI library that it has not called
"""
import ctypes
import os
import sys

print("MPI is there at first:", hasattr(ctypes.CDLL(None), "MPI_Get_version"), flush=True)
if sys.argv[2:] == ["child"]:
    child = os.fork()
    if child != 0:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
elif len(sys.argv) > 2:
    library = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
    print("looked up:", *[hasattr(ctypes.CDLL(None), sys.argv[2]) for _ in range(2)])
    sys.exit()
library = ctypes.CDLL(sys.argv[1])
library.say_which(b"library")
library.talk()
is_there = hasattr(ctypes.CDLL(None), "MPI_Status_get_tag")
print("MPI_Status_get_tag is there at last:", is_there, flush=True)
