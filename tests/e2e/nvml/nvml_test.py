"""GPUs of a node in a real job, over a driver that is made up (tests/fake_nvml): their series in
profile.h5 and in the archive, what fails in the ledger, and the same words from `aon doctor`."""
import collections
import json
import pathlib
import sys
import unittest

import h5py
import otf2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import readers  # noqa: E402
from aon_test import BUILD, TestCase, environment, ledger, profile, run  # noqa: E402

FAKES = BUILD / "lib" / "fake_nvml"
OLD = BUILD / "lib" / "fake_nvml_old"
UUID = "GPU-0000000{}-1111-2222-3333-444444440000"


def nvml_environment(folder=FAKES, **knobs):
    return environment(LD_LIBRARY_PATH=folder, **knobs)


class NvmlCase(TestCase):
    def run_job(self, seconds=1.5, folder=FAKES, options=("--without", "mpi"), **knobs):
        self.output = self.folder / "job"
        process = profile(2, self.output, "sleep", seconds, options=options,
                          env=nvml_environment(folder, **knobs))
        self.assert_exit(process)
        finished = run(["aon", "finalize", "--quiet", self.output])
        self.assert_exit(finished)
        self.provider = ledger(self.output)["nodes"][0]["providers"]["nvml"]
        return process

    def assert_archive_reads(self):
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            return {m.name: m for m in trace.definitions.metric_members}


class Series(NvmlCase):
    def setUp(self):
        super().setUp()
        self.run_job(FAKE_NVML_GPUS=2, FAKE_NVML_XID="1:31:3")
        self.file = h5py.File(self.output / "profile.h5")
        self.addCleanup(self.file.close)

    def series(self, gpu, name):
        return self.file[f"series/gpu_{UUID.format(gpu)}/{name}"]

    def test_each_gpu_has_its_own_with_units_and_what_they_cover(self):
        host = ledger(self.output)["nodes"][0]["node"]
        for gpu in (0, 1):
            power = self.series(gpu, "nvml/power")
            self.assertEqual(power.attrs["units"], "W")
            self.assertIn("device-wide, not this job", power.attrs["long_name"])
            self.assertEqual({v for v in power[:] if v == v}, {100 + 10 * gpu})
            attributes = self.series(gpu, "nvml").attrs
            self.assertEqual(attributes["node"], host)
            self.assertEqual(attributes["device"], UUID.format(gpu))
            self.assertEqual(attributes["device_name"], "Fake H100")
            self.assertEqual(attributes["pci_address"], f"0000:{0x17 + gpu:02x}:00.0")
            self.assertIn("whoever uses it", attributes["covers"])
        energy = self.series(0, "nvml/energy")
        self.assertEqual((energy.attrs["units"], energy.attrs["mode"]), ("J", "accumulated"))
        self.assertEqual(energy[0], 0)
        self.assertGreater(energy[-1], 0)
        self.assertEqual(list(energy[:]), sorted(energy[:]))

    def test_gpm_is_a_group_of_its_own(self):
        active = self.series(0, "gpm/sm-active")
        self.assertEqual(set(active[:]), {0.02})
        self.assertGreater(len(active), 2)
        self.assertNotIn("nvlink-sent-rate", self.series(0, "gpm"))

    def test_the_archive_has_them(self):
        members = self.assert_archive_reads()
        self.assertEqual(members[f"nvml::gpu_{UUID.format(1)}/nvml/power"].unit, "W")

    def test_each_gpu_is_a_location_of_the_archive_with_all_its_series(self):
        readers.otf2_print(self, self.output)
        readers.otf2_structure(self, self.output)
        told = collections.defaultdict(set)
        with otf2.reader.open(str(self.output / "traces.otf2")) as trace:
            for location, event in trace.events:
                if isinstance(event, otf2.events.Metric):
                    self.assertEqual(location.type, otf2.LocationType.METRIC)
                    names = [member.name for member in event.member_order] if hasattr(
                        event, "member_order") else [m.name for m in event.metric.members]
                    told[location.name] |= set(names)
        gpus = {name: names for name, names in told.items() if name.startswith("gpu_")}
        self.assertEqual(len(gpus), 2, told.keys())
        for name, names in gpus.items():
            device = name.split(":")[0]
            self.assertTrue(all(f"::{device}/" in metric for metric in names), names)
            self.assertIn(f"nvml::{device}/gpm/sm-active", names)
            self.assertIn(f"nvml::{device}/nvml/power", names)
        others = set().union(*(names for name, names in told.items() if name not in gpus))
        self.assertFalse([name for name in others if "::gpu_" in name])

    def test_the_ledger_names_gpus_and_xids(self):
        self.assertEqual(self.provider["state"], "on", self.provider)
        self.assertIn("2 x Fake H100", self.provider["reason"])
        self.assertIn(f"{UUID.format(1)}: Xid 31", self.provider["reason"])
        self.assertEqual(self.series(1, "health/xid-errors")[-1], 1)
        self.assertEqual(self.series(0, "health/xid-errors")[-1], 0)
        self.assertIn(f"Xid 31 of {UUID.format(1)} on", ledger(self.output)["findings"][0])

    def test_series_of_the_node_stay_where_they_are(self):
        self.assertIn("node", self.file["series/node_0"])
        self.assertNotIn("nvml", self.file["series/node_0"])


class Faults(NvmlCase):
    def test_a_lost_gpu_is_told_and_the_other_goes_on(self):
        self.run_job(FAKE_NVML_GPUS=2, FAKE_NVML_LOST="1:2")
        self.assertEqual(self.provider["state"], "degraded")
        self.assertIn("is lost", self.provider["reason"])
        with h5py.File(self.output / "profile.h5") as file:
            counts = [len(file[f"series/gpu_{UUID.format(g)}/nvml/power"]) for g in (0, 1)]
        self.assertGreater(counts[0], counts[1])

    def test_no_permission_for_gpm_has_its_remedy(self):
        self.run_job(FAKE_NVML_ERROR="nvmlGpmSampleGet:4")
        self.assertEqual(self.provider["state"], "degraded")
        self.assertIn("GPM: no permission", self.provider["reason"])
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", self.provider["remedy"])

    def test_an_old_driver_gives_what_it_has(self):
        self.run_job(folder=OLD)
        self.assertEqual(self.provider["state"], "on", self.provider)
        with h5py.File(self.output / "profile.h5") as file:
            group = file[f"series/gpu_{UUID.format(0)}"]
            self.assertIn("power", group["nvml"])
            self.assertNotIn("gpm", group)

    def test_a_driver_that_hangs_takes_nothing_else_with_it(self):
        self.run_job(FAKE_NVML_HANG="nvmlInit_v2:1")
        self.assertEqual(self.provider["state"], "degraded")
        self.assertIn("does not answer yet", self.provider["reason"])
        document = ledger(self.output)
        self.assertTrue(document["job"]["complete"], document["job"])
        self.assertGreater(document["nodes"][0]["providers"]["node"]["emitted"], 0)

    def test_a_driver_that_hangs_later_is_told_and_ends_its_series_only(self):
        self.run_job(seconds=3, FAKE_NVML_HANG="nvmlDeviceGetTemperature:2")
        self.assertEqual(self.provider["state"], "degraded")
        self.assertRegex(self.provider["reason"],
                         r"the driver does not answer \(temperature\): no values from [12] s")
        self.assertTrue(ledger(self.output)["job"]["complete"])
        with h5py.File(self.output / "profile.h5") as file:
            self.assertGreaterEqual(len(file["series/node_0/node/load"]), 3)
            self.assertIn("power", file[f"series/gpu_{UUID.format(0)}/nvml"])

    def test_a_slow_driver_costs_no_other_provider_a_sample(self):
        self.run_job(seconds=3, FAKE_NVML_SLOW="nvmlDeviceGetTemperature:300")
        self.assertIn("asked less often", self.provider["reason"])
        with h5py.File(self.output / "profile.h5") as file:
            # The first reading, one each second, and the last one.
            self.assertGreaterEqual(len(file["series/node_0/node/load"]), 3)

    def test_parts_of_a_gpu_have_series_of_their_own(self):
        self.run_job(FAKE_NVML_MIG=2)
        part = "MIG-00000000-1111-2222-3333-444444440002"
        with h5py.File(self.output / "profile.h5") as file:
            group = file[f"series/gpu_{part}"]
            self.assertIn("memory-used", group["nvml"])
            self.assertIn("sm-active", group["gpm"])
            self.assertEqual(group["nvml"].attrs["pci_address"], "0000:17:00.0")

    def test_left_out_is_left_out(self):
        self.run_job(options=("--without", "mpi,nvml"))
        self.assertEqual(self.provider["reason"], "excluded by --without")

    def test_without_the_library_it_is_off(self):
        self.run_job(folder=None)
        if "libnvidia-ml.so.1 is not there" not in self.provider["reason"]:
            self.skipTest("this machine has NVIDIA's driver")
        self.assertEqual(self.provider["state"], "off")


class Doctor(NvmlCase):
    def check(self, **knobs):
        process = run(["aon", "doctor", "--json"], env=nvml_environment(**knobs))
        self.assert_exit(process)
        return {c["name"]: c for c in json.loads(process.stdout)}["provider nvml"]

    def test_names_driver_and_devices(self):
        check = self.check(FAKE_NVML_GPUS=4, FAKE_NVML_HIDDEN=1)
        self.assertEqual(check["state"], "yes")
        self.assertIn("driver 580.65.06", check["detail"])
        self.assertIn("3 x Fake H100 (GPM)", check["detail"])
        self.assertIn("1 more are not this job's", check["detail"])

    def test_says_what_is_wrong_with_the_driver(self):
        check = self.check(FAKE_NVML_ERROR="nvmlInit_v2:18")
        self.assertEqual(check["state"], "no")
        self.assertIn("different versions", check["detail"])
        self.assertIn("reboot", check["remedy"])
        self.assertEqual(self.check(FAKE_NVML_ERROR="nvmlInit_v2:9")["remedy"], "modprobe nvidia")

    def test_tries_gpm(self):
        check = self.check(FAKE_NVML_ERROR="nvmlGpmSampleGet:4")
        self.assertEqual(check["state"], "limited")
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", check["remedy"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
