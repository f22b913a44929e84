"""What the built libraries promise to the program they are preloaded into: they need libc alone
(and each other), call no __tls_get_addr, take little static TLS, export only their own names, are
never unloaded, and run no code of theirs before they are asked to, but for one constructor."""
import pathlib
import re
import subprocess

from common import Finding

_MAX_TLS_BYTES = 256
# Of gcc's own start file; its only constructor in a library of ours.
_MAX_INIT_BYTES = {
    "libaon.so": 8,
    "libaon-mpi.so": 16,  # and plugins/mpi/offered.cpp's: before the program looks names up
}
_MAY_NEED = re.compile(r"^(libc\.so\.6|libaon\.so(\.\d+)?)$")
_EXPORTS = {
    "libaon.so": re.compile(r"^aon_\w+$"),
    "libaon-mpi.so": re.compile(r"^(aon_|MPIX?_|mpi_)\w+$"),
    "libaon-nvtx.so": re.compile(r"^InitializeInjectionNvtx(2|Extension)$"),
    "libaon-cupti.so": re.compile(r"^(InitializeInjection|aon_gpu_\w+)$"),
    "libnccl-profiler-aon.so": re.compile(r"^ncclProfiler_v[1-7]$"),
}


def _tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _check_library(path, exports):
    dynamic = _tool("readelf", "-dW", path)
    for needed in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
        if not _MAY_NEED.match(needed):
            yield Finding(path, 1, f"needs {needed}; application code links libc alone")
    if "NODELETE" not in dynamic:
        yield Finding(path, 1, "not linked with -z nodelete")
    initial = re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", dynamic)
    most = _MAX_INIT_BYTES.get(pathlib.Path(path).name)
    if most and initial and int(initial.group(1)) > most:
        yield Finding(path, 1, "has static constructors, for every program that starts: constinit")
    undefined = re.findall(r" U (\S+)", _tool("nm", "-D", path))
    for name in undefined:
        if name.startswith(
            ("__tls_get_addr", "_ZSt", "_Zn", "_Zd", "__cxa_", "_Unwind", "MPI_", "PMPI_")
        ):
            yield Finding(path, 1, f"imports {name}")
    for name in re.findall(
        r"^[0-9a-f]+ [TDBRVW] (\S+)", _tool("nm", "-D", "--defined-only", path), re.M
    ):
        if not exports.match(name.split("@")[0]):
            yield Finding(path, 1, f"exports {name}")
    segments = _tool("readelf", "-lW", path)
    tls = re.search(r"^\s+TLS\s+(?:0x[0-9a-f]+\s+){4}(0x[0-9a-f]+)", segments, re.M)
    if tls and int(tls.group(1), 16) > _MAX_TLS_BYTES:
        yield Finding(
            path, 1, f"{int(tls.group(1), 16)} bytes of TLS, the ceiling is {_MAX_TLS_BYTES}"
        )
    if re.search(r"GNU_STACK.*RWE", segments):
        yield Finding(path, 1, "executable stack")


def check_build(build):
    """Checks the libraries below `build`; a missing one is a finding."""
    for name, exports in _EXPORTS.items():
        path = build / "lib" / name
        if path.exists():
            yield from _check_library(str(path), exports)
        else:
            yield Finding(str(path), 1, "not built")
