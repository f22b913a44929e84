"""Reads ring files (spool/HOST/fallback-*.ring) as aon/ring.h, record.h and definition.h describe
them; independent of the project's own reader, so that tests compare two descriptions."""
import dataclasses
import mmap
import pathlib
import struct

CHUNK_BYTES = 4096
CHUNK_HEADER_BYTES = 64
SLOT_BYTES = 32
THREAD_SLOT_BYTES = 192
NO_CHUNK = 0xFFFFFFFF
COUNTER_COUNT = 504
KINDS = (
    "none span message exchange collective completion begin end mark sample lost thread definition "
    "rma io call_sample counters device_span nccl_call"
).split()
SPAN, MESSAGE, EXCHANGE, COLLECTIVE, COMPLETION = 1, 2, 3, 4, 5
DEFINITION, RMA, IO = 12, 13, 14
RMA_OPERATIONS = (
    "put get accumulate get_accumulate fetch_and_op compare_and_swap create create_allocated free "
    "free_allocated fence start complete post wait test lock_exclusive lock_shared unlock lock_all "
    "unlock_all flush flush_all flush_local flush_local_all sync set_info"
).split()
IO_OPERATIONS = (
    "open close read write seek sync set_size preallocate delete set_view set_atomicity "
    "set_info".split()
)
IO_COLLECTIVE, IO_NONBLOCKING, IO_SPLIT_BEGIN, IO_SPLIT_END, IO_SHARED = (1 << i for i in range(5))
IO_FROM_CURRENT, IO_FROM_END, IO_DELETES = (1 << i for i in range(5, 8))
UNKNOWN_OFFSET = 0xFFFFFFFFFFFFFFFF
ANY_PEER, NO_PEER = -1, -2
WIDE, INSIDE, OUTGOING, INCOMING, NONBLOCKING, CANCELLED, SAMPLED, _, FAILED, PARTITIONED = (
    1 << i for i in range(10)
)


def pair(word):
    """Both halves of a pack_pair() word, signed."""
    return struct.unpack("<ii", struct.pack("<Q", word))


@dataclasses.dataclass
class Record:
    """One record; `name` is that of its region."""

    slot: int
    start: int
    duration: int
    kind: int
    flags: int
    id: int
    a32: int
    a64: int
    words: tuple
    name: str = ""

    @property
    def end(self):
        return self.start + self.duration

    @property
    def is_call(self):
        return self.kind in (SPAN, MESSAGE, EXCHANGE, COLLECTIVE, RMA, IO)

    @property
    def peer(self):
        return pair(self.words[0])[0]

    @property
    def tag(self):
        return pair(self.words[0])[1]

    @property
    def request(self):
        """Of a message or completion (word 1), of any other call (word 2)."""
        return self.words[2 if self.kind in (COLLECTIVE, RMA, IO) else 1]

    @property
    def channel(self):
        """Of a message in parts: the how manieth of its envelope."""
        return self.words[2]

    @property
    def operation(self):
        """Of a one-sided call; of a call on a file, or the completion of one."""
        first, second = pair(self.words[0])
        return RMA_OPERATIONS[second] if self.kind == RMA else IO_OPERATIONS[first]

    @property
    def io_flags(self):
        return pair(self.words[0])[1]

    @property
    def offset(self):
        """Of a call on a file; None: unknown."""
        return None if self.words[1] == UNKNOWN_OFFSET else self.words[1]

    @property
    def bytes_asked(self):
        """Of a call on a file; a seek's may be negative."""
        return struct.unpack("<q", struct.pack("<Q", self.words[3]))[0]


@dataclasses.dataclass
class Communicator:
    """One CommunicatorDefinition with its name."""

    identity: int
    id: int
    parent: int
    size: int
    rank: int
    kind: int
    unseen_count: int
    name: str
    is_freed: bool = False


@dataclasses.dataclass
class Window:
    """One WindowDefinition with its name."""

    identity: int
    id: int
    communicator: int
    flavour: int
    name: str
    is_freed: bool = False


@dataclasses.dataclass
class File:
    """One FileDefinition with its name."""

    identity: int
    id: int
    communicator: int
    mode: int
    name: str
    is_closed: bool = False


class RingFile:
    """Everything in one file."""

    def __init__(self, path):
        with open(path, "rb") as file:  # most of it was never written, and need not be read
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        head = struct.unpack_from("<QIIIIQQQQQ", self.data, 0)
        self.slot_count, self.chunk_count = head[3], head[4]
        self.modes, self.slots, self.free_map, self.chunks = head[5:9]
        self.regions = {}
        self.roles = {}
        self.paradigms = {}
        self.communicators = {}
        self.windows = {}
        self.groups = {}
        self.files = {}
        self.identities = []
        self.providers = []
        self.metrics = {}
        self.thread_names = {}
        self.nccl_sums = {}
        self.nccl_sums_in_flight = {}
        self._read_definitions()
        self.records = []
        for slot in range(1, self.slot_count):
            self.records += self._stream(slot)
        for record in self.records:
            record.name = self.regions.get(record.id, "")

    def _stream(self, slot):
        base = self.slots + slot * THREAD_SLOT_BYTES
        chunk = struct.unpack_from("<I", self.data, base + 8)[0]
        while chunk != NO_CHUNK and chunk < self.chunk_count:
            at = self.chunks + chunk * CHUNK_BYTES
            committed, following = struct.unpack_from("<QI", self.data, at)
            end = at + CHUNK_HEADER_BYTES + (committed & 0xFFFFFFFF)
            at += CHUNK_HEADER_BYTES
            while at < end:
                record = self._record(slot, at)
                yield record
                at += SLOT_BYTES * (1 + len(record.words) // 4)
            if slot != 0 and following == 0:
                break
            chunk = following

    def _record(self, slot, at):
        start, duration, kind, slots, flags, number, a32, a64 = struct.unpack_from(
            "<QIBBHIIQ", self.data, at
        )
        words = struct.unpack_from(f"<{(slots - 1) * 4}Q", self.data, at + SLOT_BYTES)
        if flags & WIDE:
            duration = words[-1]
        return Record(slot, start, duration, kind, flags, number, a32, a64, words)

    def _read_definitions(self):
        payload = b""
        for record in self._stream(0):
            if record.kind != DEFINITION:
                continue
            payload = (b"" if record.a64 == 0 else payload) + struct.pack(
                f"<{len(record.words)}Q", *record.words
            )
            if len(payload) >= record.a32:
                self._define(record.id, payload[: record.a32])

    def _define(self, kind, payload):
        if kind == 1:
            number, role = struct.unpack_from("<IB", payload)
            self.regions[number] = payload[8:].split(b"\0")[0].decode()
            self.roles[self.regions[number]] = role
            self.paradigms[self.regions[number]] = payload[5]
        elif kind == 2:
            identity, number, parent, size, rank, form = struct.unpack_from("<QIIIIB", payload)
            name = payload[32:].split(b"\0")[0].decode()
            self.communicators[number] = Communicator(
                identity, number, parent, size, rank, form, payload[26], name
            )
        elif kind == 3:
            self.communicators[struct.unpack_from("<I", payload)[0]].name = (
                payload[4:].split(b"\0")[0].decode()
            )
        elif kind == 4:
            self.communicators[struct.unpack_from("<I", payload)[0]].is_freed = True
        elif kind == 12:
            name = payload[24:].split(b"\0")[0].decode()
            file = File(*struct.unpack_from("<QIII", payload), name)
            self.files[file.id] = file
        elif kind == 13:
            self.files[struct.unpack_from("<I", payload)[0]].is_closed = True
        elif kind == 5:
            self.identities.append(struct.unpack_from("<iIII", payload))
        elif kind == 6:
            texts = payload[8:].split(b"\0")
            self.providers.append((payload[0], *(t.decode() for t in texts[:3])))

        elif kind == 7:
            number = struct.unpack_from("<I", payload)[0]
            self.metrics[number] = tuple(t.decode() for t in payload[8:].split(b"\0")[:2])
        elif kind == 14:
            number = struct.unpack_from("<I", payload)[0]
            self.thread_names[number] = payload[4:].split(b"\0")[0].decode()
        elif kind == 8:
            identity, number, communicator, flavour = struct.unpack_from("<QIIB", payload)
            name = payload[24:].split(b"\0")[0].decode()
            self.windows[number] = Window(identity, number, communicator, flavour, name)
        elif kind == 9:
            self.windows[struct.unpack_from("<I", payload)[0]].name = (
                payload[4:].split(b"\0")[0].decode()
            )
        elif kind == 10:
            self.windows[struct.unpack_from("<I", payload)[0]].is_freed = True
        elif kind == 19:
            communicator, region, log2, _, _ = struct.unpack_from("<IIBBB", payload)
            key = (communicator, self.regions[region], log2)
            self.nccl_sums[key] = struct.unpack_from("<8Q", payload, 16)
            (self.nccl_sums_in_flight[key],) = struct.unpack_from("<I", payload, 12)
        elif kind == 11:
            number, count = struct.unpack_from("<II", payload)
            self.groups[number] = struct.unpack_from(f"<{count}I", payload, 8)

    def of_kind(self, kind):
        """Records of one kind, in order; kinds are named in KINDS."""
        return [r for r in self.records if KINDS[r.kind] == kind]

    def counters(self):
        """{name: exact count} of counted call sites, over all threads."""
        total = {}
        for slot in range(1, self.slot_count):
            chunk = struct.unpack_from(
                "<I", self.data, self.slots + slot * THREAD_SLOT_BYTES + 8 + 2 * 16
            )[0]
            if chunk == NO_CHUNK or chunk >= self.chunk_count:
                continue
            at = self.chunks + chunk * CHUNK_BYTES + CHUNK_HEADER_BYTES
            for site, count in enumerate(struct.unpack_from(f"<{COUNTER_COUNT}Q", self.data, at)):
                if count and site in self.regions:
                    name = self.regions[site]
                    total[name] = total.get(name, 0) + count
        return total

    @property
    def rank(self):
        return self.identities[-1][0]

    def calls(self, name):
        return [r for r in self.records if r.is_call and r.name == name]

    def one_sided(self):
        """(window, operation, target, bytes to it, bytes back) of each one-sided call."""
        return [
            (self.windows[r.a32].name, r.operation, r.peer, r.a64, r.words[1])
            for r in self.records
            if r.kind == RMA
        ]

    def completions(self):
        """Of messages and collectives."""
        return [r for r in self.records if r.kind == COMPLETION and r.id != IO]

    def io(self):
        """Calls on files, and completions of those that were begun only, in order."""
        return [r for r in self.records if r.kind == IO or r.kind == COMPLETION and r.id == IO]

    def communicator(self, name):
        """The one communicator with this name."""
        (found,) = [c for c in self.communicators.values() if c.name == name]
        return found


def read_all(folder):
    """{rank: RingFile} of all ring files below `folder`."""
    files = [RingFile(p) for p in sorted(pathlib.Path(folder).rglob("fallback-*.ring"))]
    return {f.rank: f for f in files if f.identities}
