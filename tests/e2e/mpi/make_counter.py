#!/usr/bin/python3
"""Writes the source of a PMPI tool that counts the calls of every function of <mpi.h>, and of Open
MPI 4's persistent collectives, and the bytes that sends hand over: `make_counter.py MPICC
OUTPUT.c`. It knows nothing of the project.

Preloaded behind libaon-mpi.so it sees what the program called, and writes
$PMPI_COUNT/rank-N.txt at the end, if MPI_Finalize or MPI_Abort was called or the launcher names
the rank: one line `NAME CALLS BYTES_SENT WITHIN` per function that was called. WITHIN are those of
CALLS that were made within another call, by a callback of the program or by the library.
"""
import re
import subprocess
import sys

# Functions that the standard has removed are in libraries still.
HEADER = "#define OMPI_OMIT_MPI1_COMPAT_DECLS 0\n#include <mpi.h>\n"
HEADER += "#if defined(OPEN_MPI) && MPI_VERSION < 4\n#include <mpi-ext.h>\n#endif\n"
HEAD = (
    HEADER
    + """\
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const char* name;
  unsigned long calls;
  unsigned long bytes;
  unsigned long within;
} Count;
static __thread int g_depth;
static Count g_counts[1024];
static int g_was_called;
static int g_count_count;

static Count* count_of(const char* name) {
  int index = __atomic_fetch_add(&g_count_count, 1, __ATOMIC_RELAXED);
  g_counts[index].name = name;
  return &g_counts[index];
}
static void note_call(Count* c, unsigned long bytes) {
  __atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&c->bytes, bytes, __ATOMIC_RELAXED);
  if (g_depth > 0) __atomic_fetch_add(&c->within, 1, __ATOMIC_RELAXED);
  g_was_called = 1;
}
static unsigned long bytes_of(int n, MPI_Datatype type, int destination) {
  int size = 0;
  if (destination == MPI_PROC_NULL || type == MPI_DATATYPE_NULL || n <= 0) return 0;
  PMPI_Type_size(type, &size);
  return (unsigned long)n * (unsigned long)size;
}
static int g_rank = -1;

__attribute__((destructor)) static void write_counts(void) {
  char path[4096];
  const char* folder = getenv("PMPI_COUNT");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (g_rank < 0 && rank != NULL && g_was_called) g_rank = atoi(rank);
  if (folder == NULL || g_rank < 0) return;
  snprintf(path, sizeof path, "%s/rank-%d.txt", folder, g_rank);
  FILE* file = fopen(path, "w");
  for (int i = 0; file != NULL && i < g_count_count; ++i) {
    if (g_counts[i].calls == 0) continue;
    fprintf(file, "%s %lu %lu %lu\\n", g_counts[i].name, g_counts[i].calls, g_counts[i].bytes,
            g_counts[i].within);
  }
  if (file != NULL) fclose(file);
}
/* Like other tools it lets programs name what follows: level 2, a text and two numbers. */
static void note_name(va_list more) {
  static char name[64];
  const char* text = va_arg(more, const char*);
  const long first = va_arg(more, long);
  snprintf(name, sizeof name, "%s:%ld:%ld", text, first, va_arg(more, long));
  note_call(count_of(name), 0);
}
int MPI_Pcontrol(const int level, ...) {
  static Count* c;
  if (c == NULL) c = count_of("MPI_Pcontrol");
  note_call(c, 0);
  if (level == 2) {
    va_list more;
    va_start(more, level);
    note_name(more);
    va_end(more);
  }
  return PMPI_Pcontrol(level);
}
"""
)
SKIPPED = {"MPI_Pcontrol"}  # variable arguments: by hand
# Before the call of these it is known which rank this is; an abort comes back only here.
LAST = {"MPI_Finalize": "", "MPI_Abort": "  write_counts();\n"}


def prototypes(mpicc):
    """(result, name, arguments) of every function."""
    source = subprocess.run(
        [mpicc, "-E", "-P", "-x", "c", "-"],
        input=HEADER,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wanted = r"MPI_\w+|MPIX_\w+_init"
    pattern = (
        rf"\b((?:int|double|MPI_\w+)) +({wanted}) ?\(([^;{{}}]*?)\)\s*(?:__attribute__[^;]*)?;"
    )
    for result, name, arguments in re.findall(pattern, source, re.S):
        if name not in SKIPPED and not name.isupper():
            yield result, name, " ".join(arguments.split())


def names(arguments):
    if arguments in ("void", ""):
        return []
    return [re.sub(r"(\[\d*\])+$", "", a).split()[-1].lstrip("*") for a in arguments.split(",")]


def bytes_sent(name, arguments):
    if "dest" not in arguments or name.endswith("_init"):
        return "0"
    if "sendcount" in arguments:
        return "bytes_of(sendcount, sendtype, dest)"
    return "bytes_of(count, datatype, dest)" if "datatype" in arguments else "0"


def wrapper(result, name, text):
    given = names(text)
    end = ""
    if name in LAST:
        end = "  PMPI_Comm_rank(MPI_COMM_WORLD, &g_rank);\n" + LAST[name]
    return (
        f"{result} {name}({text}) {{\n"
        f"  static Count* c;\n"
        f'  if (c == NULL) c = count_of("{name}");\n'
        f"  note_call(c, {bytes_sent(name, given)});\n{end}"
        f"  ++g_depth;\n"
        f"  {result} returned = P{name}({', '.join(given)});\n"
        f"  --g_depth;\n  return returned;\n}}\n"
    )


def main():
    mpicc, output = sys.argv[1:]
    with open(output, "w") as file:
        file.write(HEAD)
        for prototype in prototypes(mpicc):
            file.write(wrapper(*prototype))


if __name__ == "__main__":
    main()
