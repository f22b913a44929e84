"""What tests of the NCCL plugin share: kNcclCall records as aon/nccl.h describes them."""
import pathlib
import struct
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
for other in ("", "mpi", "annotate"):
    sys.path.insert(0, str(FOLDER.parent / other))

from annotated import LIBAON, RingTestCase, nesting, readers  # noqa: E402,F401
from aon_test import BUILD, ledger, profile, run  # noqa: E402,F401

FAKE = BUILD / "bin" / "fake_nccl"
PLUGIN = BUILD / "lib" / "libnccl-profiler-aon.so"
NCCL = 3  # Paradigm::kNccl
CAPTURED, TIMED, MISSED, NO_WORK, REPLAYED, ENGINES, IN_FLIGHT, ABANDONED = (
    1 << i for i in range(8)
)
OVERWRITTEN = 1 << 9  # times on the GPU, by those of a later one
UNCOUNTED = 1 << 10  # by NCCL: of a graph that was captured without channels
NO_PEER = -2
ON, DEGRADED = 1, 2
ID = 0xFEEDC0DE12345678


class Operation:
    """One kNcclCall record."""

    def __init__(self, record):
        self.record = record
        self.name = record.name
        self.start, self.end = record.start, record.end
        self.communicator = record.a32
        self.bytes = record.a64
        self.sequence, shape, self.launch, self.gpu_begin, self.gpu = record.words[:5]
        self.call = shape & 0xFFFFFFFF
        self.channels, self.algorithm, self.protocol, self.type = struct.pack("<Q", shape)[4:]
        self.peer, self.flags = struct.unpack("<iI", struct.pack("<Q", record.words[5]))
        self.skew = record.words[6]


class ProxyWork:
    """One kNcclCall record of what NCCL's proxy did."""

    def __init__(self, record):
        self.record = record
        self.name, self.bytes, self.communicator = record.name, record.a64, record.a32
        words = record.words
        self.call = words[0] & 0xFFFFFFFF
        self.channel, self.flags = words[0] >> 32 & 0xFF, words[0] >> 40 & 0xFF
        self.is_send, self.is_last = bool(self.flags & 1), bool(self.flags & 2)
        self.peer, self.planned = words[1] & 0xFFFFFFFF, words[1] >> 32
        self.steps, self.events = words[2] & 0xFFFFFFFF, words[2] >> 32
        self.gpu, self.ready, self.network, self.flush, self.longest = words[4:9]
        self.is_before_data = self.steps == 0 and self.gpu != 0


def proxy_work(ring):
    return [ProxyWork(r) for r in ring.of_kind("nccl_call") if len(r.words) == 12]


def operations(ring):
    """Whole ones; see in_flight()."""
    return [Operation(r) for r in ring.of_kind("nccl_call") if len(r.words) == 8]


def in_flight(ring):
    """{(communicator, call): NCCL's sequence} of those told before their end was known."""
    found = {}
    for record in ring.of_kind("nccl_call"):
        if len(record.words) == 4:
            assert record.words[3] >> 32 & IN_FLIGHT, record.words
            found[record.a32, record.words[1] & 0xFFFFFFFF] = record.words[0]
    return found


class PluginTestCase(RingTestCase):
    """Runs cases of fake_nccl without an agent."""

    def rings_of(self, case, version=7, count=1, **changes):
        command = (FAKE, case, version, count)
        return self.rings(*command, NCCL_PROFILER_PLUGIN=PLUGIN, **changes)

    def ring_of(self, case, version=7, count=1, **changes):
        done, rings = self.rings_of(case, version, count, **changes)
        self.assert_exit(done)
        self.assertEqual(len(rings), 1)
        return rings[0]

    def operations_of(self, case, version=7, count=1, **changes):
        return operations(self.ring_of(case, version, count, **changes))
