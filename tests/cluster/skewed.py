"""Simulated hosts whose clocks stand wrong and run at other rates, which nothing in AON can see but
by asking the other hosts; and a job on them that knows the true time.

    with SkewedHosts() as hosts, hosts.load():
        for node, bound_ns, error_ns in hosts.measure("job1", seconds=3): ...
"""
import contextlib
import subprocess
import time

import h5py
import numpy

import cluster
from aon_test import BUILD, environment, ledger
from cluster import AON_RUN, HEAT2D

# Offset in ns (which REALTIME shows too, so below what NTP leaves), rate in parts per billion.
SKEWS = {
    "n1": (0, 0),
    "n2": (3_000_000, 20_000),
    "n3": (-2_500_000, -30_000),
    "n4": (700_000, 8_000),
}


class SkewedHosts(cluster.Hosts):
    """The first one has the true time."""

    def __init__(self):
        super().__init__(len(SKEWS))

    def __enter__(self):
        super().__enter__()
        origin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        for host, (offset, rate) in SKEWS.items():
            self._skew(host, f"{offset} {rate} {origin}")
        return self

    def _skew(self, host, text):
        """Gives the host an /etc of its own, and a kernel that does not trust its TSC."""
        etc = self.folder / host / "etc"
        source = self.folder / host / "clocksource"
        source.write_text("hpet\n")
        kernels = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        script = f"""set -e
            mkdir {etc}; cp -a /etc/. {etc}
            echo {text} > {etc}/aon-skew
            echo {BUILD}/lib/libcluster_skew.so > {etc}/ld.so.preload
            mount --bind {etc} /etc
            mount --bind {source} {kernels}"""
        done = self.run(host, "sh", "-c", script)
        if done.returncode != 0:
            self.__exit__()
            raise AssertionError(done.stderr)

    @contextlib.contextmanager
    def load(self):
        """Another MPI job on all hosts meanwhile, which keeps the cores busy."""
        names = ",".join(f"{name}:1" for name in SKEWS)
        words = ["mpirun", "--mca", "plm_rsh_agent", cluster.RSH, "--host", names]
        words += ["-x", "PATH", HEAT2D, "--size", 512, "--steps", 100_000_000, "--tolerance", 0]
        command = [cluster.HERE / self.script, "exec", self.folder, "n1", *words]
        env = environment(AON_HOSTS=self.folder, HOME=self.home, OMPI_MCA_mpi_yield_when_idle=1)
        with subprocess.Popen([str(word) for word in command], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as job:
            time.sleep(2)
            if job.poll() is not None:
                raise AssertionError(f"the load has ended with {job.returncode}")
            try:
                yield
                if job.poll() is not None:
                    raise AssertionError(f"the load has ended with {job.returncode}")
            finally:
                job.terminate()

    def measure(self, name, seconds):
        """[(node, stated bound, true error)] of a job of so many seconds, in ns.

        True time is read before and after each instant, which tells its error up to the time in
        between. The true error is that of the worst instant, and the least that it can have been.
        """
        output = self.folder / name
        program = [BUILD / "bin" / "cluster_clock_truth", seconds]
        done = self.mpirun(1, AON_RUN, "-o", output, "--sampling", "0", *program,
                           env=environment(AON_MEMORY="4MiB"))
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        document = ledger(output)
        bounds = {n["node"]: n["error_ns"] for n in document["clock"]["nodes"]}
        errors = _errors_of(output, document)
        if set(errors) != set(SKEWS) or None in bounds.values():
            raise AssertionError(f"not all hosts are there: {bounds}, {list(errors)}")
        # The archive counts from another origin: where all instants of the first host agree.
        least, most = errors["n1"]
        origin = (numpy.max(least) - bounds["n1"], numpy.min(most) + bounds["n1"])
        if origin[0] > origin[1]:
            raise AssertionError(f"the clock of n1 is off by {origin[0] - origin[1]} ns in itself")
        return [(node, bounds[node], _least_error(*errors[node], *origin)) for node in errors]


def _least_error(least, most, origin_from, origin_to):
    """Of intervals of errors up to an origin in an interval: what the worst is off for certain."""
    late, early = numpy.max(least) - origin_to, origin_from - numpy.min(most)
    return float(max(0, late, early))


def _errors_of(output, document):
    """{node: (least, most) corrected less true time of each instant, ns, up to a constant}."""
    result = {}
    with h5py.File(output / "profile.h5") as file:
        for rank in document["ranks"]:
            series = file[f"series/rank_{rank['rank']}/user"]
            stamps = series["time"][()]
            before, after = series["true_before"][()], series["true_after"][()]
            # The stamp of "before" lies between both readings.
            known = ~numpy.isnan(before)
            times = stamps[known].astype(numpy.int64)
            first = before[known].astype(numpy.int64)  # both exact: a double holds 2^53 ns
            last = after[~numpy.isnan(after)].astype(numpy.int64)
            count = min(len(first), len(last))
            if count <= 50 or (first[:count] > last[:count]).any():
                raise AssertionError(f"{rank['node']} has {count} instants, or not in order")
            result[rank["node"]] = (times[:count] - last[:count], times[:count] - first[:count])
    return result
