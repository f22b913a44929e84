"""Counters of a real GPU move as they must between idle, copying in device memory, copying from the
host, and multiplying matrices: GPM, and PM sampling. What a machine lacks is skipped by its name
(77); PM sampling takes CUPTI and the permission, GPM Hopper."""
import unittest

import phase_rules
from busy_run import BusyCase
from device import BUSY, need_gpm, numbers, skip_without_device
from aon_test import main, run

AMPERE = 80


class Phases:
    """For `group`, a group of series."""

    plan = phase_rules.PLAN

    @classmethod
    def setUpClass(cls):
        capability = numbers(run([BUSY]).stdout)["capability"]
        if capability < AMPERE:
            raise unittest.SkipTest(f"no matrix kernel before Ampere: {capability / 10:.1f}")
        super().setUpClass()

    def means(self, rules):
        names = dict.fromkeys(rule[0] for rule in rules)
        return {(name, phase): self.mean(f"{self.group}/{name}", phase)
                for name in names if self.has(f"{self.group}/{name}")
                for phase in phase_rules.PHASES}  # fmt: skip

    def judge(self, rules):
        self.assertEqual(phase_rules.broken(rules, self.means(rules)), [])

    def rules(self, is_of_pcie):
        return [rule for rule in phase_rules.rules_of(self.group, self.capability)
                if rule[0].startswith("pcie-") == is_of_pcie]

    def test_values_move_with_what_the_gpu_does(self):
        self.judge(self.rules(False))

    def test_pcie_moves_with_what_comes_from_the_host(self):
        rules = self.rules(True)
        if not rules:
            raise unittest.SkipTest("no metrics of PCIe on this GPU")
        for name in {rule[0] for rule in rules}:
            self.need_metric(f"{self.group}/{name}")
        self.judge(rules)


class Gpm(Phases, BusyCase):
    group = "gpm"

    def setUp(self):
        super().setUp()
        if not self.has(self.group):
            need_gpm(self.nvml, self.capability)

    def test_multiplying_takes_more_power_than_nothing(self):
        self.assertGreater(self.mean("nvml/power", "matrix"),
                           1.3 * self.mean("nvml/power", "idle"))


class PmSampling(Phases, BusyCase):
    group = "counters"
    options = ("--gpu-counters", "core")
    provider = "gpu-counters"


if __name__ == "__main__":
    skip_without_device()
    main()
