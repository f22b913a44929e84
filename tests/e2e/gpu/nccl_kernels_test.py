"""Operations of NCCL at level api have the times of their kernels, which CUPTI saw: NCCL
(tests/fake_nccl) and the driver with its CUPTI (tests/fake_cuda) are made up."""
import collections

import h5py
from gpu_case import BUILD, GpuCase, gpu_environment, ledger, main, profile, readers

PROGRAM = BUILD / "bin" / "fake_nccl"


class Kernels(GpuCase):
    def run_nccl(self, case, *arguments, kernel_ns="10000", **knobs):
        self.output = self.folder / "job"
        script = f'FAKE_NCCL_KERNEL_NS=$(({kernel_ns})) exec "$@"'
        process = profile(2, self.output, "sh", "-c", script, "sh", PROGRAM, case, *arguments,
                          env=gpu_environment(FAKE_NCCL_CUDA=1, **knobs))
        self.assert_exit(process)
        self.assertEqual(ledger(self.output)["ranks"][0]["providers"]["nccl"]["state"], "on")
        with h5py.File(self.output / "profile.h5") as file:
            self.unmatched = int(file["gpu/nccl"].attrs["unmatched"])

    def test_each_operation_has_its_kernel(self):
        self.run_nccl("allreduce", 6, 50)
        rows = self.table("nccl")
        self.assertEqual(collections.Counter(r["rank"] for r in rows), {0: 50, 1: 50})
        self.assertEqual(self.unmatched, 0)
        with h5py.File(self.output / "profile.h5") as file:
            told = file["nccl/operations"]
            called = {(int(p), int(c)): int(t) for p, c, t in zip(
                told["process"], told["call"], told["start_ns"])}
        ends = {}
        for row in rows:
            self.assertEqual((row["name"], row["shared_by"]), ("ncclAllReduce", 1))
            self.assertAlmostEqual(row["gpu_ns"], 10_000, delta=200)
            self.assertGreater(row["gpu_start_ns"] + 5_000, called[row["process"], row["call"]])
            self.assertGreaterEqual(row["gpu_start_ns"] + 500, ends.get(row["process"], 0))
            ends[row["process"]] = row["gpu_start_ns"] + row["gpu_ns"]
        self.assert_bandwidths(rows)
        self.assert_archive_is_clean()

    def assert_bandwidths(self, rows):
        """Those of nccl-tests: AllReduce of two ranks has busbw = algbw = bytes / time."""
        gpu_ns = {(row["process"], row["call"]): row["gpu_ns"] for row in rows}
        with h5py.File(self.output / "profile.h5") as file:
            told = {name: file[f"nccl/operations/{name}"][()] for name in (
                "process", "call", "bytes", "gpu_ns", "algbw", "busbw", "flags", "skew_ns")}
            flags = [str(name) for name in file["nccl/operations"].attrs["flags"]]
            sums = {name: int(file[f"nccl/histograms/{name}"][0]) for name in (
                "count", "timed_count", "bytes", "gpu_ns")}
            busbw = float(file["nccl/histograms/busbw"][0])
        self.assertEqual(len(told["call"]), len(rows))
        for i, key in enumerate(zip(told["process"].tolist(), told["call"].tolist())):
            self.assertEqual(told["gpu_ns"][i], gpu_ns[key])
            self.assertAlmostEqual(told["algbw"][i], told["bytes"][i] / gpu_ns[key])
            self.assertAlmostEqual(told["busbw"][i], told["algbw"][i])
            self.assertEqual(told["flags"][i] >> flags.index("kernel timed") & 1, 1)
            self.assertEqual(told["flags"][i] >> flags.index("gpu timed") & 1, 0)
            self.assertNotEqual(told["skew_ns"][i], told["skew_ns"][i], "kernels do not tell it")
        self.assertEqual((sums["timed_count"], sums["gpu_ns"]),
                         (sums["count"], sum(gpu_ns.values())))
        self.assertAlmostEqual(busbw, sums["bytes"] / sums["gpu_ns"])

    def test_they_tell_who_came_late(self):
        """The others wait on their GPUs: their kernels take as much longer."""
        self.run_nccl("allreduce", 6, 50, kernel_ns="OMPI_COMM_WORLD_RANK == 1 ? 10000 : 30000")
        with h5py.File(self.output / "profile.h5") as file:
            lateness = file["nccl/lateness"]
            self.assertEqual(lateness.attrs["parts_without_gpu_time"], 0)
            told = {int(rank): (int(last), int(wait)) for rank, last, wait in zip(
                lateness["rank"], lateness["last_count"], lateness["wait_ns"])}
            caused = dict(zip(lateness["rank"][()].tolist(), lateness["caused_ns"][()].tolist()))
            (usual_ns,) = file["nccl/true_times/usual_ns"]
            connecting = int(lateness.attrs["operations_connecting"])  # a first one that was slow
        self.assertLessEqual(connecting, 1)
        count = 50 - connecting
        self.assertEqual({rank: last for rank, (last, _) in told.items()}, {0: 0, 1: count})
        self.assertAlmostEqual(told[0][1], count * 20_000, delta=count * 200)
        self.assertEqual((told[1][1], caused), (0, {0: 0, 1: told[0][1]}))
        self.assertAlmostEqual(usual_ns, 10_000, delta=1_000)
        archive_s = readers.nccl_waits(self, self.output)
        self.assertEqual(set(archive_s), {"Rank 0"})
        self.assertAlmostEqual(archive_s["Rank 0"], told[0][1] * 1e-9, places=8)

    def test_operations_of_a_group_share_it(self):
        self.run_nccl("every", 6)
        shared = {r["name"]: r["shared_by"] for r in self.table("nccl")}
        self.assertEqual(shared["ncclAllGather"], 1)
        self.assertEqual((shared["ncclSend"], shared["ncclRecv"]), (2, 2))
        with h5py.File(self.output / "profile.h5") as file:
            self.assertEqual(file["nccl/lateness"].attrs["parts_without_gpu_time"], 2 * 2)

    def test_without_calls_of_cuda_nothing_is_made_up(self):
        self.run_nccl("allreduce", 6, 20, AON_CUPTI_CALLS=0)
        self.assertEqual(self.table("nccl"), [])
        self.assertEqual(self.unmatched, 40)


if __name__ == "__main__":
    main()
