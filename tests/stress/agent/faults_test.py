"""Faults around a running agent: the worker stopped for 3 s, the agent killed as a whole, an early
end by SIGTERM, a second agent in the same folder, a small cap, a full disk."""

import atexit
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

from agent_run import SIGCONT, SIGKILL, SIGSTOP, Agent, emitted, fail, wait_until


SKIPPED = 77  # ctest counts it


def values_of(processes, run):
    return next(p for p in processes.values() if p["pid"] == run.pid)


def check(agent, run, totals, allowed=("pool full",)):
    """The spool adds up to what the emitter counted, with losses of the allowed reasons only."""
    accepted, refused = totals
    status, processes, losses, text = agent.count()
    print(text.strip())
    values = values_of(processes, run)
    if status != 0:
        fail("spool does not add up")
    if values["committed"] != accepted or values["refused"] != refused:
        fail(f"emitter counted {accepted} + {refused}")
    if any(reason not in allowed for _, reason in losses):
        fail("a loss of another reason")
    return values, losses


def stopped():
    with Agent() as agent:
        run = agent.emitter(1, 2_000_000, 200, 300)
        time.sleep(0.5)
        agent.signal_worker(SIGSTOP)
        time.sleep(3)
        agent.signal_worker(SIGCONT)
        totals = emitted(run)
        if agent.wait() != 0:
            fail(agent.log())
        _, losses = check(agent, run, totals)
        if totals[1] == 0:
            print("the ring took it all")


def killed_whole():
    """Everything at once, agent included: complete up to the last flush."""
    with Agent("--flush-ms=100") as agent:
        run = agent.emitter(1, 10_000_000, 100, 1000)
        time.sleep(2)
        worker = agent.worker()
        agent.process.kill()
        os.kill(worker, SIGKILL)
        run.kill()
        run.communicate()
        agent.process.wait()
        status, processes, losses, text = agent.count()
        print(text.strip())
        if status != 0 or losses or values_of(processes, run)["decoded"] < 50_000:
            fail("what was flushed is not there")


def terminated():
    with Agent() as agent:
        run = agent.emitter(1, 300_000, 100, 1000)
        time.sleep(0.7)
        agent.process.terminate()
        if agent.wait(10) != 0:
            fail(agent.log())
        status, processes, _, text = agent.count()
        print(text.strip())
        run.kill()
        run.communicate()
        if status != 0 or values_of(processes, run)["decoded"] == 0:
            fail("SIGTERM lost the spool")
        if os.path.exists(agent.socket):
            fail("the socket is still there")


def continued():
    """A second agent of the launch numbers on, and leaves the first one's records alone."""
    with Agent() as first:
        run = first.emitter(1, 20_000, 100, 1000)
        totals = emitted(run)
        first.wait()
        with Agent(folder=first.folder) as second:
            other = second.emitter(1, 30_000, 100, 1000)
            other_totals = emitted(other)
            if second.wait() != 0:
                fail(second.log())
            check(second, run, totals)
            check(second, other, other_totals)


def capped():
    with Agent("--disk=1MiB", "--flush-ms=50") as agent:
        run = agent.emitter(2, 4_000_000, 2000, 1000)
        totals = emitted(run)
        if agent.wait() != 0:
            fail(agent.log())
        _, losses = check(agent, run, totals, ("pool full", "evicted by cap"))
        used = sum(os.path.getsize(os.path.join(base, name))
                   for base, _, names in os.walk(agent.folder) for name in names)
        print("bytes on disk", used)
        if used > 1 << 19:
            fail("the spool is larger than its half of the cap")
        if not any(reason == "evicted by cap" for _, reason in losses):
            fail("nothing was evicted: the test is too small")


def full_disk():
    """A tmpfs of 1 MiB under the spool, with a cap that is larger."""
    if os.geteuid() != 0:
        print("skipped: needs a mount")
        raise SystemExit(SKIPPED)
    with Agent("--flush-ms=20") as probe:
        folder = os.path.join(probe.root, "small")
        os.mkdir(folder)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder])
        if mount.returncode != 0:
            print("skipped: no mount")
            raise SystemExit(SKIPPED)
        try:
            with Agent("--flush-ms=20", folder=folder) as agent:
                run = agent.emitter(2, 20_000_000, 2000, 300)
                wait_until(lambda: os.statvfs(folder).f_bavail == 0, 20)
                time.sleep(1)  # more than the agent keeps
                # Space comes back while records still come: before the agent's end, so that the
                # losses can be told.
                subprocess.run(["mount", "-o", "remount,size=8m", folder], check=True)
                totals = emitted(run)
                if agent.wait() != 0:
                    fail(agent.log())
                # Between two looks a second apart the disk fills up; at a look oldest records go.
                reasons = ("pool full", "write failed", "evicted by cap")
                _, losses = check(agent, run, totals, reasons)
                if not any(reason == "write failed" for _, reason in losses):
                    fail("the disk was not full")
        finally:
            subprocess.run(["umount", "-l", folder])


def register(agent, pid, local_ranks, world_size):
    """What aon-run says of its program; returns the connection."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(agent.socket)
    body = struct.pack("=iIiI256s", pid, local_ranks, 0, world_size, b"emitter")
    connection.send(struct.pack("=4I", 0x414F4E31, 2, 3, 16 + len(body)) + body)
    return connection


def registered_late():
    """A rank may say Hello before its aon-run says how many of its world are on this node: only
    then it is known whether there are others to look for."""
    os.environ.update(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    for local_ranks in (2, 1):
        begin = time.monotonic()
        with Agent() as agent:
            run = agent.emitter(1, 0, 100, 1000)
            atexit.register(run.kill)
            address = pathlib.Path(agent.folder, "agents", "n1.address")
            register(agent, run.pid, local_ranks, 2)
            if time.monotonic() - begin > 4:
                fail("the machine is too slow: the agent asks after 5 s without being told")
            if local_ranks == 1 and not wait_until(address.exists, 3):
                fail("does not look for other nodes")
            if local_ranks == 2 and wait_until(address.exists, 0.5):
                fail("looks for other nodes, and all ranks are here")
            run.send_signal(signal.SIGUSR1)
            emitted(run)


def never_registered():
    """Where no aon-run says how many ranks are here, those count that have come, and a worker that
    takes the place of a killed one knows them as well."""
    for world, is_spanning in ((2, True), (1, False)):
        os.environ.update(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE=str(world))
        with Agent() as agent:
            run = agent.emitter(1, 0, 100, 1000)
            atexit.register(run.kill)
            address = pathlib.Path(agent.folder, "agents", "n1.address")
            worker = agent.worker()
            agent.signal_worker(SIGKILL)
            if not wait_until(lambda old=worker: agent.worker() not in (None, old)):
                fail("no other worker")
            if is_spanning != wait_until(address.exists, 12 if is_spanning else 7):
                fail(f"a world of {world}, one rank here: wrong about other nodes")
            run.send_signal(signal.SIGUSR1)
            emitted(run)


def superseded_by(fate):
    """An agent that waits for another node's archive does not take it for complete when a later
    agent of its own node has begun, whatever became of that one."""
    os.environ.update(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    with Agent() as first:
        agents = pathlib.Path(first.folder, "agents")
        run = first.emitter(1, 0, 100, 1000)
        atexit.register(run.kill)
        waiter = register(first, run.pid, 1, 2)
        waiter.send(struct.pack("=4I", 0x414F4E31, 2, 4, 16))
        if not wait_until((agents / "n1.address").exists):
            fail("does not look for other nodes")
        (agents / "n2.lease").write_text("otherhost 4711 1 token\n")
        run.send_signal(signal.SIGUSR1)
        emitted(run)
        if not wait_until((agents / "n1.done").exists):
            fail("leaves no mark")
        with Agent(folder=first.folder) as second:
            later = second.emitter(1, 0, 100, 1000)
            atexit.register(later.kill)
            if not wait_until(lambda: not (agents / "n1.done").exists()):
                fail("the later agent leaves the mark")
            fate(second)
            waiter.settimeout(20)
            done = waiter.recv(1000)
            complete, text = struct.unpack("=I", done[16:20])[0], done[20:].rstrip(b"\0")
            texts = (b"when what runs now on this node has ended", b"has lost its agent")
            if complete or not any(one in text for one in texts) or b"aon finalize" not in text:
                fail(f"says {complete}, {text}")
            later.send_signal(signal.SIGUSR1)
            later.communicate()


def superseded():
    superseded_by(lambda agent: None)


def superseded_by_a_killed_one():
    superseded_by(killed)


def killed(agent):
    worker = agent.worker()
    agent.process.kill()
    os.kill(worker, SIGKILL)


CASES = {case.__name__: case
         for case in (stopped, killed_whole, terminated, continued, capped, full_disk,
                      registered_late, never_registered, superseded, superseded_by_a_killed_one)}
for name in sys.argv[1:] or CASES:
    print("==", name)
    CASES[name]()
print("ok")
