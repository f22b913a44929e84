"""100 SIGKILLs of the worker while a process writes as fast as it can: nothing is lost but what a
full ring refused and the cap evicted, both counted, and every number comes out once."""

import random
import time
from signal import SIGUSR1

from agent_run import SIGKILL, Agent, emitted, fail

KILLS = 100

NO_PAUSE = 0

with Agent("--flush-ms=20", "--disk=4GiB") as agent:
    run = agent.emitter(2, 0, 1, NO_PAUSE)
    kills = 0
    last = None
    while kills < KILLS and run.poll() is None:
        worker = agent.worker()
        if worker is not None and worker != last and agent.signal_worker(SIGKILL):
            kills += 1
            last = worker
        time.sleep(random.uniform(0.001, 0.06))
    run.send_signal(SIGUSR1)
    accepted, refused = emitted(run)
    if agent.wait() != 0:
        fail("agent: " + agent.log())
    status, processes, losses, text = agent.count()
    print(text, f"kills {kills} accepted {accepted} refused {refused}")
    if kills < KILLS:
        fail(f"only {kills} kills: the emitter ended")
    values = next(p for p in processes.values() if p["pid"] == run.pid)
    if status != 0 or values["committed"] != accepted or values["refused"] != refused:
        fail("spool does not add up")
    evicted = sum(count for (_, reason), count in losses.items() if reason == "evicted by cap")
    if values["decoded"] + evicted != accepted:
        fail(f"{accepted} records were taken, but {values['decoded']} are there")
    if any(reason not in ("pool full", "evicted by cap") for _, reason in losses):
        fail("records were lost beside those that a full ring refused and the cap evicted")
print("ok")
