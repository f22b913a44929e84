"""A program of NCCL without anything but NCCL and the driver:

    nccl_ranks.py LIBRARY ID_FILE CASE [COUNT]

self: a rank sends to itself. sweep: AllReduce of 128 KiB to 4 MiB. times: the same, and rank 0 says
"all_reduce_BYTES NS ...", medians of blocks, one AllReduce and the waiting for it, and "call_BYTES
NS ...", those of the host's call: in turn with what AON's plugin asks for and with nothing
(nccl_toggle.c, which AON_TOGGLE names; without it both are alike). straggler: the last rank comes
50 ms late to each AllReduce. skip: the last rank does not come to the last one. graph: an AllReduce
is captured and launched COUNT times. Its rank is that of mpirun; ranks on one GPU say that they are
on different hosts, and talk by sockets. Prints what it called. Exits 77 without a GPU or NCCL.
"""
import ctypes
import os
import pathlib
import statistics
import sys
import time

SKIPPED = 77
NO_DEVICE, STUB_LIBRARY = 100, 34
SWEEP = [1 << power for power in range(17, 23)]
BLOCK = 20
FLOAT, SUM = 7, 0
TOGETHER = {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_MAX_CTAS": "2", "NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0"}  # fmt: skip
RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))
SIZE = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def load(name):
    try:
        return ctypes.CDLL(name, mode=os.RTLD_GLOBAL | os.RTLD_NOW)
    except OSError as error:
        print(f"skipped: {error}")
        sys.exit(SKIPPED)


def good(result, what):
    if result != 0:
        raise SystemExit(f"{what}: {result}")


class Gpu:
    def __init__(self):
        self.cuda = load("libcuda.so.1")
        error = self.cuda.cuInit(0)
        if error in (NO_DEVICE, STUB_LIBRARY):
            print("skipped: no GPU")
            sys.exit(SKIPPED)
        good(error, "cuInit")
        context = ctypes.c_void_p()
        good(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "context")
        good(self.cuda.cuCtxSetCurrent(context), "context")
        self.stream = ctypes.c_void_p()
        good(self.cuda.cuStreamCreate(ctypes.byref(self.stream), 1), "stream")

    def memory(self, size):
        address = ctypes.c_uint64()
        good(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), "memory")
        return ctypes.c_void_p(address.value)

    def wait(self):
        good(self.cuda.cuStreamSynchronize(self.stream), "synchronize")

    def capture(self, work):
        """An executable graph of what `work` puts into the stream. NCCL does not end its
        communicator before `drop` of it."""
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        good(self.cuda.cuStreamBeginCapture_v2(self.stream, 2), "capture")
        work()
        good(self.cuda.cuStreamEndCapture(self.stream, ctypes.byref(graph)), "capture")
        good(self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph,
                                                   ctypes.c_ulonglong(0)), "graph")  # fmt: skip
        good(self.cuda.cuGraphDestroy(graph), "graph")
        return ready

    def drop(self, ready):
        good(self.cuda.cuGraphExecDestroy(ready), "graph")


class Nccl:
    def __init__(self, library, id_file, gpu):
        self.nccl, self.gpu = load(library), gpu
        self.nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
        for name in ("ncclSend", "ncclRecv"):
            getattr(self.nccl, name).argtypes = [
                ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                ctypes.c_void_p, ctypes.c_void_p]  # fmt: skip
        self.nccl.ncclAllReduce.argtypes = [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
            ctypes.c_void_p, ctypes.c_void_p]  # fmt: skip
        self.comm = ctypes.c_void_p()
        good(self.nccl.ncclCommInitRank(ctypes.byref(self.comm), SIZE, self.share(id_file), RANK),
             "ncclCommInitRank")  # fmt: skip
        self.send, self.receive = gpu.memory(4 << 20), gpu.memory(4 << 20)

    def share(self, id_file):
        """Rank 0 makes the id, the others read it."""
        own, path = Id(), pathlib.Path(id_file)
        if RANK == 0:
            good(self.nccl.ncclGetUniqueId(ctypes.byref(own)), "ncclGetUniqueId")
            fresh = path.with_suffix(".fresh")
            fresh.write_bytes(bytes(own))
            fresh.rename(path)
            return own
        end = time.monotonic() + 60
        while not path.exists():
            if time.monotonic() > end:
                raise SystemExit("no id")
            time.sleep(0.01)
        return Id.from_buffer_copy(path.read_bytes())

    def all_reduce(self, size):
        good(self.nccl.ncclAllReduce(self.send, self.receive, size // 4, FLOAT, SUM, self.comm,
                                     self.gpu.stream), "ncclAllReduce")  # fmt: skip

    def to_itself(self, size):
        good(self.nccl.ncclGroupStart(), "ncclGroupStart")
        for call, memory in ((self.nccl.ncclSend, self.send), (self.nccl.ncclRecv, self.receive)):
            good(call(memory, size // 4, FLOAT, RANK, self.comm, self.gpu.stream), "transfer")
        good(self.nccl.ncclGroupEnd(), "ncclGroupEnd")

    def destroy(self):
        good(self.nccl.ncclCommDestroy(self.comm), "ncclCommDestroy")


def toggled():
    """The plugin that NCCL is to load instead of AON's, which is in it; None: there is none."""
    path, aons = (os.environ.get(name) for name in ("AON_TOGGLE", "NCCL_PROFILER_PLUGIN"))
    if not path or not aons:
        return None
    os.environ.update(NCCL_PROFILER_PLUGIN=path, AON_TOGGLED_PLUGIN=aons)
    return ctypes.CDLL(path)


def block(world, size):
    """(median of an AllReduce with the waiting for it, of the call alone), in ns."""
    times_ns, calls_ns = [], []
    for _ in range(BLOCK):
        start_ns = time.perf_counter_ns()
        world.all_reduce(size)
        calls_ns.append(time.perf_counter_ns() - start_ns)
        world.gpu.wait()
        times_ns.append(time.perf_counter_ns() - start_ns)
    return statistics.median(times_ns), statistics.median(calls_ns)


def measure(world, plugin, size, count):
    """Prints pairs of blocks, the first of each with the level; which of them is done first
    changes from pair to pair."""
    block(world, size)
    values = []
    for pair in range(count):
        results = {}
        for is_on in (1, 0) if pair % 2 else (0, 1):
            if plugin is not None and not plugin.nccl_toggle(is_on):
                raise SystemExit("the level asks for nothing")
            results[is_on] = block(world, size)
        values += [results[1], results[0]]
    if RANK == 0:
        for name, column in zip(("all_reduce", "call"), zip(*values)):
            print(f"{name}_{size}", *(f"{value:.0f}" for value in column), flush=True)


def main():
    library, id_file, case = sys.argv[1:4]
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    if SIZE > 1:
        os.environ.update(TOGETHER, NCCL_HOSTID=f"host{RANK}")
    plugin = toggled() if case == "times" else None
    gpu = Gpu()
    world = Nccl(library, id_file, gpu)
    is_last = RANK == SIZE - 1
    if case == "self":
        for _ in range(count):
            world.to_itself(1 << 20)
            gpu.wait()
    elif case == "graph":
        world.all_reduce(1 << 20)  # connects
        gpu.wait()
        graph = gpu.capture(lambda: world.all_reduce(1 << 20))
        for _ in range(count):
            good(gpu.cuda.cuGraphLaunch(graph, gpu.stream), "launch")
            gpu.wait()
        gpu.drop(graph)
    elif case == "times":
        for size in SWEEP:
            measure(world, plugin, size, count)
    else:
        for size in SWEEP if case == "sweep" else [1 << 20]:
            for step in range(count):
                if case == "straggler" and is_last:
                    time.sleep(0.05)
                if case == "skip" and is_last and step == count - 1:
                    print("skips", flush=True)
                    time.sleep(600)
                world.all_reduce(size)
                gpu.wait()
    world.destroy()
    print(f"done {case} {RANK}")


if __name__ == "__main__":
    main()
