#!/usr/bin/python3
"""Writes the source of a library that counts the calls of every Fortran function of the MPI library
that a program is linked with: `make_fortran_counter.py OUTPUT.c PROGRAM`. It knows nothing of the
project.

Preloaded behind libaon-mpi.so it sees what is forwarded under each name, and writes
$PMPI_COUNT/fortran-N.txt at the end: one line `SYMBOL CALLS` per function that was called. A
counter is a jump through a table, so no function's arguments need to be known.
"""
import pathlib
import re
import subprocess
import sys

HEAD = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void* fortran_real[FUNCTION_COUNT];
unsigned long fortran_calls[FUNCTION_COUNT];
static const char* const g_names[FUNCTION_COUNT] = {
"""
TAIL = """
};
__attribute__((constructor)) static void find_all(void) {
  for (int i = 0; i < FUNCTION_COUNT; ++i) fortran_real[i] = dlsym(RTLD_NEXT, g_names[i]);
}
__attribute__((destructor)) static void write_counts(void) {
  char path[4096];
  const char* folder = getenv("PMPI_COUNT");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  if (folder == NULL || rank == NULL) return;
  snprintf(path, sizeof path, "%s/fortran-%s.txt", folder, rank);
  FILE* file = fopen(path, "w");
  for (int i = 0; file != NULL && i < FUNCTION_COUNT; ++i) {
    if (fortran_calls[i] != 0) fprintf(file, "%s %lu\\n", g_names[i], fortran_calls[i]);
  }
  if (file != NULL) fclose(file);
}
"""
COUNTER = r"""
__asm__(".globl {name}\n.type {name}, @function\n{name}:\n"
        "movq fortran_calls@GOTPCREL(%rip), %r11\nlock incq {at}(%r11)\n"
        "movq fortran_real@GOTPCREL(%rip), %r11\njmp *{at}(%r11)\n");"""


def libraries(program):
    """The Fortran libraries of MPI that `program` needs."""
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"=> (\S*/libmpi\w*(?:fh|f08|fort)\S*)", text)


def names(program):
    """All Fortran functions of the library, and those that mpi_f08 takes from C."""
    command = ["nm", "-D", "--defined-only", *libraries(program)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = set(re.findall(r" [TW] (mpi_\w*[^_\W]_)$", text, re.MULTILINE))
    return sorted(found | {"MPI_Wtime", "MPI_Wtick"})


def main():
    found = names(sys.argv[2])
    text = HEAD.replace("FUNCTION_COUNT", str(len(found)))
    text += ",\n".join(f'  "{name}"' for name in found)
    text += TAIL.replace("FUNCTION_COUNT", str(len(found)))
    text += "".join(COUNTER.format(name=name, at=8 * i) for i, name in enumerate(found))
    pathlib.Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
