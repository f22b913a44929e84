"""What programs/random says it did, and what the files of a job say: functions that return both in
one form, so that a test need only compare.
"""
import collections
import pathlib

import h5py
import otf2
from otf2 import events

Counter = collections.Counter
SENDS = (events.MpiSend, events.MpiIsend)
RECEIVES = (events.MpiRecv, events.MpiIrecv)
COLLECTIVES = (events.MpiCollectiveEnd, events.NonBlockingCollectiveComplete)


class Account:
    """The lines of all processes, as far as they came."""

    def __init__(self, folder, rank_count):
        self.calls = [Counter() for _ in range(rank_count)]
        self.messages = collections.defaultdict(Counter)  # by communicator
        self.collectives = collections.defaultdict(Counter)  # by communicator
        self.rma = Counter()  # by window, origin and target, and kind
        self.io = Counter()  # by file, rank and column
        self.unmatched = 0
        for rank in range(rank_count):
            self.rank = rank
            for line in lines_of(folder, rank):
                kind, *words = line.split()
                getattr(self, f"add_{kind}")(*words)

    def add_call(self, name):
        self.calls[self.rank][name] += 1

    def add_send(self, comm, source, destination, tag, byte_count):
        self.messages[comm][int(source), int(destination), int(tag), int(byte_count)] += 1

    def add_collective(self, comm, operation, root, sent, received):
        key = self.rank, operation, int(root), int(sent), int(received)
        self.collectives[comm][key] += 1

    def add_rma(self, window, kind, target, sent, received):
        place = window, self.rank, int(target)
        self.rma[*place, kind] += 1
        self.rma[*place, "bytes_sent"] += int(sent)
        self.rma[*place, "bytes_received"] += int(received)

    def add_file(self, file):
        self.io[file, self.rank, "opens"] += 1

    def add_io(self, file, kind, byte_count, is_collective):
        place, past = (file, self.rank), {"read": "read", "write": "written"}[kind]
        self.io[*place, f"{kind}s"] += 1
        self.io[*place, f"bytes_{past}"] += int(byte_count)
        self.io[*place, "collective_count"] += int(is_collective)
        self.io[*place, "collective_bytes"] += int(byte_count) * int(is_collective)

    def add_unmatched(self, count):
        self.unmatched += int(count)


def lines_of(folder, rank):
    """The file has zeros where a killed process was about to write, and at its end."""
    path = pathlib.Path(folder) / f"told-{rank}"
    with open(path, "rb") as file:
        while chunk := file.readline():
            if chunk.startswith(b"\0"):
                return
            yield chunk.decode()


class Archive:
    """Messages and collectives of the OTF2 archive, by communicator."""

    def __init__(self, output):
        with h5py.File(pathlib.Path(output) / "profile.h5") as file:
            kinds = file["communicators/kind"][:]
        self.inter = {row for row, kind in enumerate(kinds) if kind == b"inter"}
        self.sends = collections.defaultdict(Counter)
        self.receives = collections.defaultdict(Counter)
        self.collectives = collections.defaultdict(Counter)
        with otf2.reader.open(str(pathlib.Path(output) / "traces.otf2")) as trace:
            self.members = {c._ref: [l.group._ref for l in c.group.members]
                            for c in trace.definitions.comms}
            for location, event in trace.events:
                self.add(location.group._ref, event)

    def world_rank(self, comm, me, rank):
        members = self.members[comm]
        return members[rank] if members else me

    def add(self, me, event):
        if isinstance(event, SENDS):
            comm = event.communicator._ref
            to = self.world_rank(comm, me, event.receiver)
            self.sends[comm][me, to, event.msg_tag, event.msg_length] += 1
        elif isinstance(event, RECEIVES):
            comm = event.communicator._ref
            source = self.world_rank(comm, me, event.sender)
            self.receives[comm][source, me, event.msg_tag, event.msg_length] += 1
        elif isinstance(event, COLLECTIVES):
            operation = str(event.collective_op).rpartition(".")[2]
            comm = event.communicator._ref
            root = event.root if event.root < 2**31 and comm not in self.inter else -1
            key = me, operation, root, event.size_sent, event.size_received
            self.collectives[comm][key] += 1


def by_communicator(messages, collectives):
    """What was done on each communicator, without its id: a multiset."""
    found = Counter()
    for comm in {*messages, *collectives}:
        both = (messages.get(comm, {}), collectives.get(comm, {}))
        found[tuple(frozenset(one.items()) for one in both)] += 1
    return found


def total(messages):
    """Of all communicators."""
    return sum(messages.values(), Counter())


def columns(file, name):
    return {key: column[()] for key, column in file[name].items()}


def message_sums(output):
    """{(source, destination): (count, bytes)} of the profile."""
    with h5py.File(pathlib.Path(output) / "profile.h5") as file:
        rows = columns(file, "messages")
    return {(int(s), int(d)): (int(c), int(b)) for s, d, c, b in
            zip(rows["source"], rows["destination"], rows["count"], rows["bytes"])}


def told_message_sums(messages):
    sums = collections.defaultdict(lambda: (0, 0))
    for found in messages.values():
        for (source, destination, _, byte_count), count in found.items():
            before = sums[source, destination]
            sums[source, destination] = before[0] + count, before[1] + count * byte_count
    return dict(sums)


def sums_by(rows, keys, values):
    """Multiset of the rows' values by `keys` (without the id of the window or file)."""
    found = collections.defaultdict(Counter)
    for at in range(len(rows[keys[0]])):
        place = tuple(int(rows[key][at]) for key in keys)
        for value in values:
            found[place[0]][*place[1:], value] += int(rows[value][at])
    return Counter(frozenset((+one).items()) for one in found.values() if +one)


RMA = ("puts", "gets", "atomics", "bytes_sent", "bytes_received")
IO = ("reads", "writes", "bytes_read", "bytes_written", "collective_count", "collective_bytes")


def table_sums(output, name, keys, values):
    with h5py.File(pathlib.Path(output) / "profile.h5") as file:
        return sums_by(columns(file, name), keys, values)


def told_sums(told):
    """The same of an Account's `rma` or `io`."""
    found = collections.defaultdict(Counter)
    for (first, *place), value in told.items():
        if place[-1] != "opens":
            found[first][tuple(place)] += value
    return Counter(frozenset((+one).items()) for one in found.values() if +one)
