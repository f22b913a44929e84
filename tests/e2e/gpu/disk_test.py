"""More work of a device than `--disk` has room to sort: the newest is kept, the rest is counted and
told, and a larger one takes it in. CUPTI is made up."""
import collections
import re

from gpu_case import KERNELS, GpuCase, main
from aon_test import ledger, run

# Each launch is a call, too: more than what is sorted in memory in any case, 8 MiB of 56 bytes.
FIRST, LAUNCHES = 50, 90_000
LEFT_OUT = re.compile(
    r"([\d ]+) kernels, copies, sets and graphs, the oldest, are left out, and ([\d ]+) calls and "
    r"waits for devices: sorting them would not fit below --disk; they are in the spool, and aon "
    r"finalize --disk SIZE with a larger one takes them in"
)


class Disk(GpuCase):
    def finalize(self, size):
        """Work by name, and how much and how many calls the warning says are left out."""
        self.assert_exit(run(["aon", "finalize", "--disk", size, self.output]))
        document = ledger(self.output)
        self.assert_law(document)
        work = collections.Counter()
        for row in self.table("kernels"):
            work[row["name"]] += row["count"]
        work["copies and sets"] = sum(row["count"] for row in self.table("copies"))
        said = [LEFT_OUT.fullmatch(line) for line in document["assembly"]["warnings"]]
        counts = [tuple(int(n.replace(" ", "")) for n in m.groups()) for m in said if m]
        return work, counts

    def test_the_newest_work_is_kept_and_the_rest_counted(self):
        self.run_program(LAUNCHES, 1, ranks=1, GPU_PROGRAM_NAMES=FIRST, AON_MEMORY="64M",
                         AON_NODE_MEMORY="256M")
        whole, counts = self.finalize("1G")
        self.assertEqual(counts, [])
        self.assertEqual(sum(whole[name] for name in KERNELS), LAUNCHES)
        oldest = {f"kernel_{i}" for i in range(FIRST)}
        self.assertEqual(oldest & set(whole), oldest)

        part, counts = self.finalize("8M")
        self.assertEqual(len(counts), 1, ledger(self.output)["assembly"]["warnings"])
        ((work, calls),) = counts
        self.assertEqual(sum(part.values()) + work, sum(whole.values()))
        self.assertGreater(work, LAUNCHES // 20)
        self.assertGreater(part["reduce"], LAUNCHES // 6)
        # The oldest have names of their own; those after them take turns.
        self.assertEqual(oldest & set(part), set())
        turns = [part[name] for name in KERNELS]
        self.assertLessEqual(max(turns) - min(turns), 1)
        self.assertEqual(part["graph_node"], whole["graph_node"])
        self.assertGreater(calls, LAUNCHES // 20)

        self.assertEqual(self.finalize("1G"), (whole, []))


if __name__ == "__main__":
    main()
