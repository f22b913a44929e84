#!/usr/bin/python3
"""Checks of an OTF2 archive that otf2-print does not make: nesting, time order, matching of
messages, requests, collectives and transfers of files, the group rules of OTF2 3.0 and the ids that
ViTE and Pipit rely on.

    check_otf2.py DIR/traces.otf2 [--messages N]

Prints one line of counts; exits 1 with one line per error. Where the archive itself says that its
communication is not complete (property OTF2::MPI_COMMUNICATION_COMPLETE), unmatched messages and
collectives are counted but are no errors.

OTF2 readers loop for ever on a truncated file: run this under a time limit.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

import h5py
import otf2
from otf2 import LocationGroupType, LocationType, events

MAX_ERRORS = 20
SENDS = (events.MpiSend, events.MpiIsend)
UNKNOWN_ROOT = 0xFFFFFFFF
RECEIVES = (events.MpiRecv, events.MpiIrecv)


class Report:
    """Errors of one kind are counted and shown once."""

    def __init__(self):
        self.first = {}
        self.count = collections.Counter()

    def error(self, kind, text):
        self.first.setdefault(kind, text)
        self.count[kind] += 1

    def print(self):
        for kind in list(self.first)[:MAX_ERRORS]:
            print(f"error: {kind} ({self.count[kind]} times), e.g. {self.first[kind]}")
        return bool(self.first)


def is_pre_created(handle):
    flags = handle.io_handle_flags
    return bool(int(getattr(flags, "value", flags)) & 1)


def is_complete(anchor):
    """What the archive claims about its communication."""
    info = subprocess.run(["otf2-print", "-I", anchor], capture_output=True, text=True, timeout=60,
                          check=True).stdout
    found = re.search(r"MPI_COMMUNICATION_COMPLETE\s*\nProperty value\s+(\w+)", info)
    return bool(found) and found.group(1) == "true"


def check_definitions(definitions, report):
    """PROCESS groups hold a CPU thread and no stream; master thread's id = group id = rank."""
    by_group = collections.defaultdict(list)
    for location in definitions.locations:
        by_group[location.group._ref].append(location)
    process_ids = []
    for group in definitions.location_groups:
        types = [location.type for location in by_group[group._ref]]
        if group.location_group_type == LocationGroupType.PROCESS:
            process_ids.append(group._ref)
            if LocationType.CPU_THREAD not in types or LocationType.GPU in types:
                report.error("PROCESS group without CPU thread or with a stream", group.name)
            masters = [l._ref for l in by_group[group._ref] if l.type == LocationType.CPU_THREAD]
            if masters and min(masters) != group._ref:
                report.error("master location id is not the rank", group.name)
        elif LocationType.GPU not in types or LocationType.CPU_THREAD in types:
            report.error("ACCELERATOR group without stream or with a CPU thread", group.name)
    if process_ids != list(range(len(process_ids))):
        report.error("process group ids are not 0..n-1", process_ids[:10])


def inter_communicators(anchor):
    """Ids of those between two groups, as the profile beside the archive tells; its rows are the
    archive's ids."""
    profile = pathlib.Path(anchor).with_name("profile.h5")
    if not profile.exists():
        return set()
    with h5py.File(profile) as file:
        kinds = file["communicators/kind"][:]
    return {row for row, kind in enumerate(kinds) if kind in ("inter", b"inter")}


def without_unknown_roots(operations, by_member):
    """In the root's own group only the root itself knows who it is: an unknown root is what
    another member says."""
    roots = [[o[i][1] for o in by_member if i < len(o) and o[i][1] != UNKNOWN_ROOT]
             for i in range(len(operations))]
    return [(operation, known[0] if root == UNKNOWN_ROOT and known else root)
            for (operation, root), known in zip(operations, roots)]


class LocationState:
    def __init__(self):
        self.time = 0
        self.stack = []
        self.is_counted = False  # has synchronous metrics
        self.counted_at = None
        self.requests = set()
        self.all_requests = set()
        self.collective_depth = 0
        self.rma_depth = 0
        self.made_windows = set()
        self.freed_windows = set()
        self.locks = set()
        self.transfers = set()
        self.all_transfers = set()


class Checker:
    def __init__(self, definitions, report, inter_comms=()):
        self.report = report
        self.inter_comms = inter_comms
        self.group_of = {l._ref: l.group._ref for l in definitions.locations}
        self.type_of = {l._ref: l.type for l in definitions.locations}
        # Rank of a process (location group) in a communicator, and back.
        self.rank_in = {}
        self.member_of = {}
        for comm in definitions.comms:
            groups = [l.group._ref for l in comm.group.members]
            self.rank_in[comm._ref] = {group: rank for rank, group in enumerate(groups)}
            self.member_of[comm._ref] = groups
        self.states = collections.defaultdict(LocationState)
        self.collective_requests = collections.defaultdict(set)
        self.begun_collectives = {}  # (group, request): (how, how manieth)
        self.sends = collections.Counter()
        self.live_sends = {}  # so that a cancelled one is none
        self.receives = collections.Counter()
        self.collectives = collections.defaultdict(lambda: collections.defaultdict(list))
        self.rma_collectives = collections.defaultdict(lambda: collections.defaultdict(list))
        self.open_files = {(g._ref, h._ref) for h in definitions.io_handles if is_pre_created(h)
                           for g in definitions.location_groups}  # (group, handle)
        self.begun_io = collections.defaultdict(set)  # by group and handle
        self.all_io = collections.defaultdict(set)
        self.io_errors = []  # kind and text
        self.event_count = collections.Counter()
        self.per_location = collections.Counter()

    def peer_group(self, comm, rank, group, where):
        """Location group of `rank` in `comm`; COMM_SELF has no list of members."""
        members = self.member_of[comm._ref]
        if not members:
            return group
        if rank >= len(members):
            self.report.error("peer is not in the communicator", f"{rank} of {comm.name} {where}")
            return -1
        return members[rank]

    def event(self, location, event):
        key = location._ref
        state = self.states[key]
        where = f"at {event.time} on location {key:#x}"
        self.per_location[key] += 1
        self.event_count[type(event).__name__] += 1
        if event.time < state.time:
            self.report.error("time goes back", where)
        state.time = event.time
        if isinstance(event, (events.Enter, events.Leave)):
            if state.is_counted and state.counted_at != event.time:
                self.report.error("no metric before an Enter or Leave", where)
            state.counted_at = None
        if isinstance(event, events.Enter):
            state.stack.append(event.region)
        elif isinstance(event, events.Leave):
            if not state.stack or state.stack.pop() is not event.region:
                self.report.error("bad nesting", f"{event.region.name} {where}")
        elif isinstance(event, events.Metric):
            self.metric(key, state, event, where)
        elif type(event).__name__.startswith("Rma"):
            self.one_sided(key, state, event, where)
        elif type(event).__name__.startswith("Io"):
            self.io(self.group_of[key], event, where)
        else:
            self.communication(key, state, event, where)

    def metric(self, key, state, event, where):
        """Of a thread: one synchronous metric before each Enter and Leave, never backwards."""
        if self.type_of[key] == LocationType.METRIC:
            return
        if event.metric.occurrence != otf2.MetricOccurrence.SYNCHRONOUS_STRICT:
            self.report.error("asynchronous metric on a thread (Pipit stops there)", where)
        if state.counted_at is not None or (not state.is_counted and self.per_location[key] > 1):
            self.report.error("metric without its Enter or Leave", where)
        state.is_counted = True
        state.counted_at = event.time

    def io(self, group, event, where):
        """Handles are open while they are used, each transfer ends once."""
        if isinstance(event, events.IoDeleteFile):
            return
        key = (group, event.handle._ref)
        if isinstance(event, events.IoCreateHandle):
            if key in self.open_files and not is_pre_created(event.handle):
                self.io_errors.append(("file handle is created twice", where))
            self.open_files.add(key)
            return
        if key not in self.open_files:
            self.io_errors.append(("file handle is used while it is not open", where))
        if isinstance(event, events.IoDestroyHandle):
            self.open_files.discard(key)
        elif isinstance(event, events.IoOperationBegin):
            if event.matching_id in self.all_io[key]:
                self.io_errors.append(("matching id is used twice", f"{event.matching_id} {where}"))
            self.all_io[key].add(event.matching_id)
            self.begun_io[key].add(event.matching_id)
        elif not isinstance(event, events.IoSeek):
            if event.matching_id not in self.begun_io[key]:
                self.io_errors.append(("transfer without begin", f"{event.matching_id} {where}"))
            if not isinstance(event, (events.IoOperationIssued, events.IoOperationTest)):
                self.begun_io[key].discard(event.matching_id)

    def communication(self, key, state, event, where):
        group = self.group_of[key]
        if not state.stack and type(event).__name__.startswith(("Mpi", "NonBlocking")):
            self.report.error("MPI event outside of any region", where)
        if isinstance(event, SENDS):
            to = self.peer_group(event.communicator, event.receiver, group, where)
            message = (event.communicator._ref, group, to, event.msg_tag, event.msg_length)
            self.sends[message] += 1
            if isinstance(event, events.MpiIsend):
                self.live_sends[key, event.request_id] = message
        if isinstance(event, events.MpiRequestCancelled):
            message = self.live_sends.pop((key, event.request_id), None)
            self.sends.subtract([message] if message else [])
        if isinstance(event, RECEIVES):
            source = self.peer_group(event.communicator, event.sender, group, where)
            self.receives[
                (event.communicator._ref, source, group, event.msg_tag, event.msg_length)] += 1
        # A collective may end on another thread than the one that began it.
        requests = state.requests
        is_refused = (isinstance(event, events.MpiRequestCancelled)
                      and event.request_id in self.collective_requests[group])
        if is_refused or isinstance(event, (events.NonBlockingCollectiveRequest,
                                            events.NonBlockingCollectiveComplete)):
            requests = self.collective_requests[group]
        if isinstance(event, (events.MpiIsend, events.MpiIrecvRequest,
                              events.NonBlockingCollectiveRequest)):
            if event.request_id in state.all_requests:
                self.report.error("request id is used twice", f"{event.request_id} {where}")
            requests.add(event.request_id)
            state.all_requests.add(event.request_id)
            if isinstance(event, events.NonBlockingCollectiveRequest):
                is_persistent = state.stack and state.stack[-1].name.startswith("MPI_Start")
                how = "started" if is_persistent else "begun"
                self.begun_collectives[group, event.request_id] = (how, len(self.begun_collectives))
        if isinstance(event, (events.MpiIsendComplete, events.MpiIrecv, events.MpiRequestCancelled,
                              events.NonBlockingCollectiveComplete)):
            if event.request_id not in requests:
                self.report.error("completion without request", f"{event.request_id} {where}")
            requests.discard(event.request_id)
        if isinstance(event, events.MpiCollectiveBegin):
            state.collective_depth += 1
        if isinstance(event, events.MpiCollectiveEnd):
            state.collective_depth -= 1
            if state.collective_depth != 0:
                self.report.error("MpiCollectiveEnd without Begin", where)
        if isinstance(event, (events.MpiCollectiveEnd, events.NonBlockingCollectiveComplete)):
            # Of non-blocking ones the order in which they were begun is that of all members, and
            # persistent ones may be started in any order (MPI-4.1, 6.13).
            how, number = ("blocking", 0) if isinstance(event, events.MpiCollectiveEnd) else (
                self.begun_collectives.get((group, event.request_id), ("begun", 0)))
            operation = (event.collective_op, event.root)
            self.collectives[event.communicator._ref, how][group].append(
                (str(operation) if how == "started" else number, operation))

    def one_sided(self, key, state, event, where):
        """Collectives are pairs, windows live, locks are released, transfers completed."""
        name = type(event).__name__
        if not state.stack:
            self.report.error("MPI event outside of any region", where)
        if name == "RmaCollectiveBegin":
            state.rma_depth += 1
            return
        window = event.win._ref
        if window in state.freed_windows and name != "RmaCollectiveEnd":
            self.report.error("event of a window that was freed", f"{name} {where}")
        if name == "RmaWinCreate":
            state.made_windows.add(window)
        elif window not in state.made_windows and self.is_alone(key):
            self.report.error("event of a window that was not created", f"{name} {where}")
        if name == "RmaWinDestroy":
            state.freed_windows.add(window)
        elif name == "RmaCollectiveEnd":
            state.rma_depth -= 1
            if state.rma_depth != 0:
                self.report.error("RmaCollectiveEnd without Begin", where)
            group = self.group_of[key]
            self.rma_collectives[window][group].append(event.collective_op)
        elif name == "RmaAcquireLock":
            state.locks.add((window, event.remote))
        elif name == "RmaReleaseLock":
            if (window, event.remote) not in state.locks:
                self.report.error("release of a lock that is not held", where)
            state.locks.discard((window, event.remote))
        elif name in ("RmaPut", "RmaGet", "RmaAtomic"):
            self.peer_group(event.win.comm, event.remote, self.group_of[key], where)
            state.transfers.add(event.matching_id)
            state.all_transfers.add(event.matching_id)
        elif name.startswith("RmaOpComplete"):
            if event.matching_id not in state.all_transfers:
                self.report.error("completion without transfer", f"{event.matching_id} {where}")
            if name != "RmaOpCompleteBlocking":
                state.transfers.discard(event.matching_id)

    def is_alone(self, key):
        """Whether the location is the only thread of its process: windows belong to processes."""
        group = self.group_of[key]
        return sum(1 for k, g in self.group_of.items()
                   if g == group and self.type_of[k] == LocationType.CPU_THREAD) == 1

    def finish(self, definitions, complete):
        for key, state in self.states.items():
            if state.stack:
                names = [region.name for region in state.stack]
                self.report.error("regions are open at the end", f"{names} on location {key:#x}")
            if state.collective_depth != 0 or state.rma_depth != 0:
                self.report.error("collective is open at the end", f"location {key:#x}")
            if complete and state.transfers and self.is_alone(key):
                self.report.error("transfers are open at the end", f"location {key:#x}")
        for location in definitions.locations:
            if self.per_location[location._ref] != location.number_of_events:
                self.report.error(
                    "number of events differs from the definition",
                    f"{location.name} {location._ref:#x}: {self.per_location[location._ref]} of "
                    f"{location.number_of_events}")
        unmatched = self.unmatched_messages()
        if unmatched and complete:
            self.report.error("unmatched messages", unmatched[0])
        self.check_collectives(complete)
        for kind, text in self.io_errors if complete else ():
            self.report.error(kind, text)
        return len(unmatched)

    def unmatched_messages(self):
        both = [("send without receive", self.sends - self.receives),
                ("receive without send", self.receives - self.sends)]
        return [f"{what}: communicator, source, destination, tag, bytes = {key}, {count} times"
                for what, left in both for key, count in left.items()]

    def check_collectives(self, complete):
        """Every member of a communicator took part in the same operations, in the same order."""
        if not complete:
            return
        for (comm, _), by_group in self.collectives.items():
            members = set(self.member_of[comm])
            if not members:
                continue
            if set(by_group) != members:
                self.report.error("a member took no part in the collectives",
                                  f"communicator {comm}: {sorted(members - set(by_group))[:10]}")
                continue
            in_order = [sorted(one, key=lambda entry: entry[0]) for one in by_group.values()]
            told = [[operation for _, operation in one] for one in in_order]
            if comm in self.inter_comms:
                told = [without_unknown_roots(operations, told) for operations in told]
            if len({tuple(operations) for operations in told}) != 1:
                self.report.error("members differ in their collectives", f"communicator {comm}")
        for window, by_group in self.rma_collectives.items():
            if len({tuple(map(str, told)) for told in by_group.values()}) != 1:
                self.report.error("members differ in their collectives", f"window {window}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("anchor")
    arguments.add_argument("--messages", type=int, help="expected number of messages")
    options = arguments.parse_args()
    report = Report()
    complete = is_complete(options.anchor)
    with otf2.reader.open(options.anchor) as trace:
        check_definitions(trace.definitions, report)
        checker = Checker(trace.definitions, report, inter_communicators(options.anchor))
        for location, event in trace.events:
            checker.event(location, event)
        unmatched_count = checker.finish(trace.definitions, complete)
    send_count, receive_count = sum(checker.sends.values()), sum(checker.receives.values())
    if options.messages is not None and (send_count, receive_count) != (options.messages,) * 2:
        report.error("number of messages", f"{send_count} sends, {receive_count} receives")
    print(f"{sum(checker.event_count.values())} events, {send_count} sends, "
          f"{receive_count} receives, {unmatched_count} kinds of unmatched messages, "
          f"communication {'complete' if complete else 'not complete'}")
    return report.print()


if __name__ == "__main__":
    sys.exit(main())
