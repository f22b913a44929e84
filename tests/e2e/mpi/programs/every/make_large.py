#!/usr/bin/python3
"""Writes large.h: each function of <mpi.h> that has a large-count form becomes that form, so that
one source makes a program of either. `make_large.py MPICC large.h`"""
import pathlib
import re
import subprocess
import sys


def main():
    mpicc, output = sys.argv[1:]
    command = [mpicc, "-E", "-P", "-x", "c", "-"]
    text = subprocess.run(
        command, input="#include <mpi.h>\n", check=True, capture_output=True, text=True
    ).stdout
    names = sorted(set(re.findall(r"\b(MPI_\w+)_c\(", text)))
    lines = ["// Made by make_large.py.", "#pragma once", "#include <mpi.h>"]
    lines += [f"#define {name} {name}_c" for name in names]
    pathlib.Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
