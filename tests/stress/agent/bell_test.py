"""A burst that fills more than half of a ring while the agent sleeps wakes it."""

import time

from agent_run import Agent, fail

RECORDS = 90_000  # 2.9 of the 4 MiB that a ring has at first
MOST_PROCESSES = 40  # one after the other; of some the agent takes a part in its turn

rings = 0
with Agent() as agent:
    keeps_it_alive = agent.emitter(1, 1, 1, 0, "hold", 100)
    for _ in range(MOST_PROCESSES):
        lines = agent.start_emitter(1, RECORDS, 1, 0, "bell").communicate()[0].splitlines()
        print(lines)
        rings = int(lines[1].removeprefix("bell "))  # -1: it waited too long for a ring
        if rings > 0:
            break
        time.sleep(0.1)  # it drains what there is, and sleeps
    if rings < 1:
        fail("nobody woke the agent")
    keeps_it_alive.kill()
    keeps_it_alive.wait()
    if agent.wait() != 0 or agent.count()[0] != 0:
        fail("spool does not add up")
print("ok")
