"""Looks for MPI as mpi4py's wheels do, among what is loaded already, loads a library that is linked
to it, and calls that.

    lacking.py LIBRARY
"""
import ctypes
import sys

print("MPI is there at first:", hasattr(ctypes.CDLL(None), "MPI_Get_version"), flush=True)
library = ctypes.CDLL(sys.argv[1])
library.say_which(b"library")
library.talk()
