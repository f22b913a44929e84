"""Reads the sample's profile.h5 with h5py, xarray (netcdf4 and h5netcdf) and ncdump: written in one
piece, and by two shares, whose series are in files of their own."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import h5py
import numpy as np
import xarray as xr

SAMPLE = sys.argv.pop(1)
SERIES = "series/rank_1/perf"
ENGINES = ["netcdf4", "h5netcdf"]


class Readers(unittest.TestCase):
    OPTIONS = []

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.folder = tempfile.TemporaryDirectory(prefix="aon-hdf5-")
        cls.path = os.path.join(cls.folder.name, "profile.h5")
        subprocess.run([SAMPLE, *cls.OPTIONS, cls.path], check=True, timeout=60)
        cls.file = h5py.File(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.file.close()
        cls.folder.cleanup()

    def column(self, name):
        dataset = self.file[name]
        if h5py.check_string_dtype(dataset.dtype):
            return list(dataset.asstr()[:])
        return dataset[:].tolist()

    def path_of_series(self, _engine):
        return self.path

    def test_groups_are_all_there(self):
        expected = {"nodes", "ranks", "topology", "regions", "profile", "messages", "communicators",
                    "windows", "rma", "files", "io", "series", "clock_pings", "functions",
                    "callpaths", "samples", "gpu", "nccl", "counters"}
        self.assertEqual(set(self.file), expected)
        self.assertEqual(self.file.attrs["NX_class"], "NXroot")
        self.assertEqual(self.file.attrs["aon_format_version"], 1)
        self.assertEqual(self.file.attrs["communication_complete"], 1)

    def test_ranks_and_nodes(self):
        self.assertEqual(self.column("nodes/name"), ["node0", "node1"])
        self.assertEqual(self.column("nodes/clock_error_ns"), [10.0, 10.0])
        self.assertEqual(self.column("ranks/rank"), [0, 1, 2, -1])
        self.assertEqual(self.column("ranks/host"), ["node0", "node0", "node1", "node1"])
        self.assertEqual(self.column("ranks/pid"), [1000, 1001, 1010, 1011])
        self.assertEqual(self.column("ranks/exit_signal"), [0, 0, 9, 9])
        self.assertEqual(self.column("ranks/binding"), ["0-1"] * 4)

    def test_clock_pings_are_as_measured(self):
        self.assertEqual(self.column("clock_pings/node"), [1, 1])
        self.assertEqual(self.column("clock_pings/peer"), [0, -1])
        self.assertEqual(self.column("clock_pings/sent_ticks"), [100, 200])
        self.assertEqual(self.column("clock_pings/peer_received_ticks"), [7, 9])
        self.assertEqual(self.column("clock_pings/peer_sent_ticks"), [8, 10])
        self.assertEqual(self.column("clock_pings/received_ticks"), [140, 240])
        self.assertEqual(self.file["clock_pings"].attrs["one_of"], 1)

    def test_profile_has_the_programs_figures(self):
        names = self.column("regions/name")
        self.assertEqual(names[9], "solve \u00fc ?")
        profile = {k: self.file["profile"][k][:] for k in self.file["profile"] if k != "row"}
        for rank in range(3):
            sends = (profile["rank"] == rank) & (profile["region"] == names.index("MPI_Send"))
            self.assertEqual(profile["count"][sends].tolist(), [rank + 1])
            self.assertEqual(profile["inclusive_ns"][sends].tolist(), [100 * (rank + 1)])
            self.assertEqual(profile["bytes"][sends].tolist(), [10 * (rank + 1)])
            self.assertEqual(profile["min_ns"][sends].tolist(), [100])
            self.assertEqual(profile["histogram"][sends][0][6], rank + 1)
            caller = (profile["rank"] == rank) & (profile["region"] == 9)
            self.assertEqual(profile["exclusive_ns"][caller].tolist(), [100000 - 100 * (rank + 1)])
            counted = (profile["rank"] == rank) & (profile["region"] == 7)
            self.assertEqual(profile["count"][counted].tolist(), [1000 + rank % 2])
            self.assertEqual(profile["timed_count"][counted].tolist(), [0])

    def test_messages_and_communicators(self):
        self.assertEqual(self.column("messages/source"), [0, 1, 2, 3])
        self.assertEqual(self.column("messages/destination"), [0, 0, 0, 0])
        self.assertEqual(self.column("messages/count"), [1, 2, 3, 4])
        self.assertEqual(self.column("messages/bytes"), [10, 20, 30, 40])
        first = self.column("communicators/first_member")
        members = self.column("communicators/members/world_rank")
        self.assertEqual(members[first[0]:first[1]], [0, 1, 2])
        self.assertEqual(members[first[1]:], [2, -1])

    def test_windows_and_transfers(self):
        self.assertEqual(self.column("windows/name"), ["halo"])
        self.assertEqual(self.column("windows/communicator"), [0])
        self.assertEqual(self.column("windows/flavour"), ["shared"])
        self.assertEqual(self.column("rma/origin"), [0, 1, 2, 3])
        for name, value in {"window": 0, "target": 0, "puts": 0, "gets": 0, "atomics": 1,
                            "bytes_sent": 8, "bytes_received": 8}.items():
            self.assertEqual(self.column(f"rma/{name}"), [value] * 4, name)

    def test_topology_is_a_tree(self):
        types = self.column("topology/type")
        parents = self.column("topology/parent")
        self.assertEqual(types[0], "machine")
        self.assertIn("pu", types)
        self.assertEqual(parents[0], -1)
        self.assertTrue(all(parent < row for row, parent in enumerate(parents)))
        self.assertIn("<topology", self.column("topology/xml/document")[0])

    def test_series_are_nxdata(self):
        self.assertEqual(sorted(self.file["series"]),
                         ["gpu_GPU-5d2c", "node_1", "rank_0", "rank_1", "rank_2"])
        self.assertEqual(self.file["series"].attrs["default"], "rank_0/perf")
        group = self.file[SERIES]
        self.assertEqual(group.attrs["NX_class"], "NXdata")
        self.assertEqual(group.attrs["signal"], "task-clock")
        self.assertEqual(list(group.attrs["axes"]), ["time"])
        self.assertEqual(group["time"].attrs["units"], "nanoseconds since 1970-01-01 00:00:00")
        self.assertEqual(group.attrs["start"], "2025-11-21T04:40:00.000000000Z")
        cycles, scale = group["cycles"][:], group["cycles_scale"][:]
        self.assertEqual(np.isnan(cycles).sum(), 10)
        self.assertEqual(cycles[49], 49e6)
        self.assertEqual(scale[19:21].tolist(), [1.0, 2.0])
        self.assertNotIn("task-clock_scale", group)

    def test_series_say_what_they_cover(self):
        of_rank = self.file["series/rank_1/perf"].attrs
        self.assertEqual((of_rank["node"], of_rank["ranks"]), ("node0", "1"))
        self.assertEqual(of_rank["covers"], "rank 1 on node0")
        of_node = self.file["series/node_1/example"].attrs
        self.assertEqual((of_node["node"], of_node["ranks"]), ("node1", "2"))
        self.assertEqual(of_node["covers"], "node node1, also what others do on it")

    def test_series_of_a_device_that_two_nodes_saw_are_two(self):
        gpu = self.file["series/gpu_GPU-5d2c"]
        self.assertEqual(sorted(gpu), ["nvml", "nvml_1"])
        self.assertEqual(gpu["nvml/power"][:2].tolist(), [100.0, 101.0])
        self.assertEqual(gpu["nvml_1/power"][:2].tolist(), [200.0, 201.0])
        self.assertEqual(gpu["nvml"].attrs["node"], "node0")
        self.assertEqual(gpu["nvml_1"].attrs["node"], "node1")

    def test_sums_of_all_other_events(self):
        self.assertEqual(self.column("io/writes"), [1] * 4)
        self.assertEqual(self.column("samples/count"), [1, 1, 2, 1, 1, 2])
        self.assertEqual(self.column("callpaths/total_count"), [8, 6])
        for name in ("callpaths/self_period", "callpaths/total_period", "samples/period"):
            self.assertEqual(self.file[name].attrs["units"], "ns", name)
        self.assertEqual(self.column("gpu/kernels/count"), [1, 2, 3, 4])
        self.assertEqual(self.column("gpu/copies/bytes"), [256] * 4)
        self.assertEqual(self.column("nccl/operations/process"), [0, 1, 2, 3])
        self.assertEqual(self.column("nccl/histograms/count"), [4])
        self.assertEqual(self.column("nccl/proxy/process"), [0, 1, 2, 3])
        inclusive = [i for i, region in zip(self.column("counters/inclusive"),
                                            self.column("counters/region")) if region == 9]
        self.assertEqual(inclusive, [100, 200, 300, 400])

    def test_xarray_opens_series_with_times(self):
        for engine in ENGINES:
            with xr.open_dataset(self.path_of_series(engine), group=SERIES,
                                 engine=engine) as data:
                self.assertEqual(data.sizes["time"], 50, engine)
                self.assertEqual(str(data.time.values[0]), "2025-11-21T04:40:00.000000000")
                self.assertEqual(data["cycles"].dims, ("time",))

    def test_xarray_opens_tables(self):
        for engine in ENGINES:
            for table in ["profile", "messages", "ranks", "nodes", "regions"]:
                with xr.open_dataset(self.path, group=table, engine=engine,
                                     decode_times=False) as data:
                    self.assertIn("row", data.sizes, f"{engine} {table}")
            with xr.open_dataset(self.path, group="profile", engine=engine) as data:
                self.assertEqual(data["histogram"].dims, ("row", "bucket"), engine)
                self.assertEqual(int(data["count"].sum()), 4 + 1 + 2 + 3 + 4 + 4002)

    def test_ncdump_reads_the_header(self):
        out = subprocess.run(["ncdump", "-h", self.path], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("group: rank_1", out.stdout)


def content(item):
    """All that can be read below `item`, in the order of its making, but for HDF5's own notes."""
    notes = ("DIMENSION_LIST", "REFERENCE_LIST")
    attributes = {k: np.asarray(v).tolist() for k, v in item.attrs.items() if k not in notes}
    if isinstance(item, h5py.Dataset):
        values = item.asstr()[:] if h5py.check_string_dtype(item.dtype) else item[:]
        return attributes, str(item.dtype), [repr(v) for v in values.ravel().tolist()]
    names = []
    if item.id.get_create_plist().get_link_creation_order():
        item.id.links.iterate(names.append, idx_type=h5py.h5.INDEX_CRT_ORDER)
    else:
        names = [name.encode() for name in sorted(item)]
    return attributes, [(name, content(item[name])) for name in names]


class ReadersOfShares(Readers):
    OPTIONS = ["--shares"]

    def path_of_series(self, engine):
        """h5netcdf takes references between datasets of a linked file for those of profile.h5."""
        own = os.path.join(self.folder.name, "series/node1.h5")
        return own if engine == "h5netcdf" else self.path

    def test_it_is_the_file_of_the_whole(self):
        whole = os.path.join(self.folder.name, "whole.h5")
        subprocess.run([SAMPLE, whole], check=True, timeout=60)
        with h5py.File(whole) as file:
            self.assertEqual(content(self.file), content(file))

    def test_series_are_links_that_move_with_the_folder(self):
        link = self.file.get(SERIES, getlink=True)
        self.assertIsInstance(link, h5py.ExternalLink)
        self.assertEqual((link.filename, link.path), ("series/node1.h5", "/" + SERIES))
        with tempfile.TemporaryDirectory(prefix="aon-hdf5-") as moved:
            folder = os.path.join(moved, "job")
            shutil.copytree(self.folder.name, folder)
            self.assertTrue(os.path.exists(os.path.join(folder, "series/node1.h5")))
            with h5py.File(os.path.join(folder, "profile.h5")) as file:
                self.assertTrue(file[SERIES].file.filename.startswith(folder))
                self.assertEqual(len(file[SERIES]["time"]), 50)

    def test_the_file_of_a_share_opens_by_itself(self):
        with h5py.File(os.path.join(self.folder.name, "series/node0.h5")) as file:
            self.assertEqual(file.attrs["NX_class"], "NXroot")
            self.assertEqual(file["series"].attrs["default"], "rank_0/perf")
            self.assertEqual(sorted(file["series"]), ["gpu_GPU-5d2c", "node_1", "rank_0", "rank_2"])


class FullDisk(unittest.TestCase):
    def test_a_full_disk_is_one_clear_error(self):
        out = subprocess.run([SAMPLE, "/dev/full"], capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 1)
        self.assertIn("No space left on device", out.stderr)
        self.assertEqual(len(out.stderr.splitlines()), 1, out.stderr)


if __name__ == "__main__":
    unittest.main()
