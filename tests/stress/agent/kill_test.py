"""100 SIGKILLs of the worker while a process writes at full rate: nothing is lost but what a full
ring refused, and every number comes out once."""

import random
import time
from signal import SIGUSR1

from agent_run import SIGKILL, Agent, emitted, fail

KILLS = 100

with Agent("--flush-ms=20", "--disk=1GiB") as agent:
    run = agent.emitter(2, 0, 400, 2000)
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
    if values["decoded"] != accepted or any(reason != "pool full" for _, reason in losses):
        fail("records were lost beside those that a full ring refused")
print("ok")
