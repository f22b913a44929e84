#!/usr/bin/python3
"""Writes the source of a library that binds MPI to Python's ctypes: `make_binding.py MPICC
OUTPUT.c`. It is what mpi4py's extension is to the loader: a library that brings MPI along where no
other module sees it, and calls MPI's functions by name. (ctypes alone would look them up in the MPI
library, past every tool.)

For each function py_NAME; for what mpi.h has as macros py_value_NAME; and parts of a status.
"""
import sys

from make_counter import HEADER, names, prototypes

VALUES = {
    "MPI_Comm": "MPI_COMM_WORLD MPI_COMM_SELF MPI_COMM_NULL",
    "MPI_Datatype": "MPI_INT MPI_BYTE MPI_DOUBLE",
    "MPI_Op": "MPI_SUM MPI_MAX MPI_OP_NULL",
    "MPI_Request": "MPI_REQUEST_NULL",
    "MPI_Info": "MPI_INFO_NULL",
    "MPI_Errhandler": "MPI_ERRORS_RETURN",
    "MPI_File": "MPI_FILE_NULL",
    "MPI_Win": "MPI_WIN_NULL",
    "void*": "MPI_IN_PLACE MPI_STATUS_IGNORE MPI_STATUSES_IGNORE",
    "int": "MPI_ANY_SOURCE MPI_ANY_TAG MPI_PROC_NULL MPI_UNDEFINED MPI_LOCK_EXCLUSIVE MPI_ERR_RANK "
           "MPI_MODE_CREATE MPI_MODE_RDWR MPI_COMM_TYPE_SHARED MPI_ERR_OTHER MPI_SEEK_SET",
}  # fmt: skip
STATUS = """
int py_status_bytes(void) { return sizeof(MPI_Status); }
int py_source(const MPI_Status* status) { return status->MPI_SOURCE; }
int py_tag(const MPI_Status* status) { return status->MPI_TAG; }
int py_handle_bytes(void) { return sizeof(MPI_Comm); }
"""


def main():
    mpicc, output = sys.argv[1:]
    with open(output, "w") as file:
        file.write(HEADER + STATUS)
        for kind, values in VALUES.items():
            for name in values.split():
                file.write(f"{kind} py_value_{name}(void) {{ return ({kind}){name}; }}\n")
        for result, name, text in prototypes(mpicc):
            if "f08" in name:
                continue  # in another library
            call = f"{name}({', '.join(names(text))})"
            file.write(f"{result} py_{name}({text}) {{ return {call}; }}\n")


if __name__ == "__main__":
    main()
