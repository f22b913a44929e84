"""Other people's readers of what AON writes: otf2-print, python3-otf2, ViTE, h5py and xarray. Each
function takes the test (for its assertions) and the job directory; it raises when the reader
objects.

OTF2 readers loop for ever on a truncated file: all run under a time limit and a file size limit.
"""
import collections
import json
import pathlib
import re

import h5py
import numpy

from aon_test import PYTHON, SOURCE, environment, run

GROUPS = ("nodes", "ranks", "topology", "regions", "profile", "messages", "rma", "io")
GROUPS += ("communicators", "windows", "files")
_READ_WITH_OTF2 = """
import sys, otf2
sends = receives = count = 0
with otf2.reader.open(sys.argv[1]) as trace:
    expected = sum(l.number_of_events for l in trace.definitions.locations)
    for location, event in trace.events:
        count += 1
        sends += isinstance(event, (otf2.events.MpiSend, otf2.events.MpiIsend))
        receives += isinstance(event, (otf2.events.MpiRecv, otf2.events.MpiIrecv))
print(expected, count, sends, receives)
"""

# Of each location beside a timeline.
_NCCL_WAITS_WITH_OTF2 = """
import json, sys, otf2
values = {}
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        if not isinstance(event, otf2.events.Metric):
            continue
        if event.metric.members[0].name == "NCCL waiting time":
            assert location.name.startswith("NCCL waiting time: NCCL "), location.name
            values.setdefault((location.group.name, location), []).append(event.values[0])
print(json.dumps([(group, told) for (group, _), told in values.items()]))
"""

# Messages match in the order in which they were sent and in which their receives began.
_ARROWS_WITH_OTF2 = """
import collections, sys, otf2
E = otf2.events
sends, receives = collections.defaultdict(list), collections.defaultdict(list)
begun = {}
with otf2.reader.open(sys.argv[1]) as trace:
    ns = 1e9 / trace.definitions.clock_properties.timer_resolution
    node = {l.group._ref: l.group.system_tree_parent.name for l in trace.definitions.locations}
    members = {c._ref: [l.group._ref for l in c.group.members] for c in trace.definitions.comms}
    for number, (location, event) in enumerate(trace.events):
        me = location.group._ref
        if isinstance(event, E.MpiIrecvRequest):
            begun[location._ref, event.request_id] = number
        if isinstance(event, (E.MpiSend, E.MpiIsend)):
            comm = event.communicator._ref
            to = members[comm][event.receiver] if members[comm] else me
            sends[comm, me, to, event.msg_tag].append(event.time)
        if isinstance(event, (E.MpiRecv, E.MpiIrecv)):
            comm = event.communicator._ref
            source = members[comm][event.sender] if members[comm] else me
            order = begun.get((location._ref, getattr(event, "request_id", None)), number)
            receives[comm, source, me, event.msg_tag].append((order, event.time))
for key, times in sends.items():
    for sent, (_, received) in zip(times, sorted(receives[key]), strict=True):
        print(node[key[1]], node[key[2]], round((received - sent) * ns))
"""


def archive(output):
    return pathlib.Path(output) / "traces.otf2"


def otf2_print(test, output):
    """The reference reader, with warnings as errors, finds nothing to say."""
    done = run(["otf2-print", "--silent", "-Werror", archive(output)])
    test.assert_exit(done)
    test.assertEqual(done.stderr, "")


def markers(test, output):
    """What otf2-marker reads: {category: [(time, duration, scope, text)]}. Of archives without
    markers it says nothing. otf2-print passes them over, and python3-otf2 3.0.2 cannot read
    them."""
    done = run(["otf2-marker", archive(output)])
    test.assert_exit(done)
    test.assertEqual(done.stderr, "")
    found = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        if line.startswith("MARKER_DEF"):
            group, category = re.findall(r'"([^"]*)"', line)
            test.assertEqual(group, "AON")
            continue
        time, duration, scope, text = re.fullmatch(
            r'MARKER +Time: (\d+), Duration (\d+), Scope: (\S+), Text: "(.*)"', line).groups()
        found[category].append((int(time), int(duration), scope, text))
    return found


def trace_range(test, output):
    """First and last time of the archive."""
    done = run(["otf2-print", "-G", archive(output)])
    test.assert_exit(done)
    start, length = re.search(r"Global Offset: (\d+), Length: (\d+)", done.stdout).groups()
    return int(start), int(start) + int(length)


def otf2_structure(test, output):
    """Nesting, time order, message matching: what otf2-print does not check."""
    checker = SOURCE / "tests" / "e2e" / "check_otf2.py"
    test.assert_exit(run([PYTHON, checker, archive(output)]))


def nccl_waits(test, output):
    """What each process (its group) has waited for late members of NCCL's operations, in seconds:
    the last value of its metrics, which only grow."""
    otf2_print(test, output)
    otf2_structure(test, output)
    done = run([PYTHON, "-c", _NCCL_WAITS_WITH_OTF2, archive(output)], timeout_s=240)
    test.assert_exit(done)
    waited_s = collections.Counter()
    for group, values in json.loads(done.stdout):
        test.assertEqual(values, sorted(values))
        waited_s[group] += values[-1]
    return waited_s


def otf2_messages(test, output):
    """python3-otf2 reads every event that is announced; returns the number of messages."""
    done = run([PYTHON, "-c", _READ_WITH_OTF2, archive(output)], timeout_s=240)
    test.assert_exit(done)
    expected, count, sends, receives = map(int, done.stdout.split())
    test.assertGreater(count, 0)
    test.assertEqual(count, expected)
    test.assertEqual(sends, receives)
    return sends


def otf2_arrows(test, output):
    """(sender's node, receiver's node, ns from send to receive) of each message."""
    done = run([PYTHON, "-c", _ARROWS_WITH_OTF2, archive(output)], timeout_s=240)
    test.assert_exit(done)
    lines = [line.rsplit(" ", 2) for line in done.stdout.splitlines()]
    return [(source, to, int(length_ns)) for source, to, length_ns in lines]


def many_nodes(test, output, document):
    """All readers of an archive of several nodes: every rank and every arrow is there, and no arrow
    between nodes points backwards by more than the ledger's clock error."""
    otf2_print(test, output)
    otf2_structure(test, output)
    count = otf2_messages(test, output)
    vite(test, output, len(document["ranks"]), count)
    arrows = otf2_arrows(test, output)
    test.assertEqual(len(arrows), count)
    between = [length_ns for source, to, length_ns in arrows if source != to]
    test.assertGreater(len(between), 0)
    error_ns = document["clock"]["max_error_ns"]
    test.assertIsNotNone(error_ns, document["clock"])
    test.assertGreaterEqual(min(between), -error_ns)


def vite(test, output, rank_count, message_count, rank_name="MPI Rank"):
    """ViTE draws the name of every rank and an arrow for every message. It exits 0 always,
    so only the drawing counts."""
    drawing = test.folder / "timeline.svg"
    home = environment(QT_QPA_PLATFORM="offscreen", XDG_RUNTIME_DIR=test.folder, HOME=test.folder)
    done = run(["/usr/bin/vite", "-e", drawing, archive(output)], env=home, timeout_s=240)
    test.assertTrue(drawing.exists(), done.stderr[-2000:])
    arrow_count, names = 0, set()
    with open(drawing, errors="replace") as svg:
        for line in svg:
            arrow_count += line.count("<polygon")
            names.update(re.findall(rf"\b{rank_name} (\d+)", line))
    test.assertEqual(names, {str(rank) for rank in range(rank_count)})
    test.assertEqual(arrow_count, message_count)


def below(group, path=""):
    """(path, node) of all that is below `group`, behind links to other files as well, which
    h5py's visititems() leaves out."""
    for name in group:
        node = group[name]
        yield path + name, node
        if isinstance(node, h5py.Group):
            yield from below(node, path + name + "/")


def hdf5(test, output):
    """h5py reads every dataset; xarray opens every group that is meant for it (NXdata): h5netcdf
    in the file where it is, netcdf4 also behind a link."""
    import xarray  # only here: a machine that AON was carried to may have none

    path = pathlib.Path(output) / "profile.h5"
    nxdata, own_places = [], []
    with h5py.File(path) as file:
        for name in GROUPS:
            test.assertIn(name, file)
        for name, node in below(file):
            if isinstance(node, h5py.Dataset):
                node[()]
            elif node.attrs.get("NX_class") in ("NXdata", b"NXdata"):
                nxdata.append(name)
                own_places.append((node.file.filename, node.name))
    opened = [(place, "h5netcdf") for place in own_places]
    opened += [((path, group), "netcdf4") for group in nxdata]
    for (file, group), engine in opened:
        with xarray.open_dataset(file, group=group, engine=engine) as data:
            data.load()
    return nxdata


def region_counts(output, column="count"):
    """{region name: calls} over all locations, from /profile."""
    counts = {}
    with h5py.File(pathlib.Path(output) / "profile.h5") as file:
        names = [n.decode() if isinstance(n, bytes) else n for n in file["regions/name"][()]]
        regions, calls = file["profile/region"][()], file["profile"][column][()]
        for region in numpy.unique(regions):
            counts[names[region]] = int(calls[regions == region].sum())
    return counts


def file_size_bytes(folder):
    return sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file())
