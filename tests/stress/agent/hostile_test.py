"""Hostile processes scribble over their rings while the same agent serves an honest one: the
honest one's records are all there, and the agent's worker never died. AON_AGENT names another
agent (one built with sanitizers)."""

import os
import subprocess

from agent_run import AGENT, BUILD, Agent, emitted, fail

HOSTILE = os.path.join(BUILD, "bin", "agent_hostile")

with Agent("-v", "--flush-ms=50", program=os.environ.get("AON_AGENT", AGENT)) as agent:
    environment = dict(os.environ, AON_SOCKET=agent.socket, AON_OUTPUT=agent.folder)
    honest = agent.emitter(1, 300_000, 100, 1000)
    for batch in range(2):
        hostile = [subprocess.Popen([HOSTILE, str(10 * batch + seed), "2"], env=environment)
                   for seed in range(4)]
        codes = [process.wait() for process in hostile]
        if any(codes):
            fail(f"hostile processes: {codes}")
    accepted, refused = emitted(honest)
    if agent.wait() != 0:
        fail(agent.log())
    _, processes, _, text = agent.count()
    print(text.strip())
    values = next(p for p in processes.values() if p["pid"] == honest.pid)
    if (values["decoded"], values["refused"]) != (accepted, refused):
        fail(f"the honest process emitted {accepted}")
    if "was killed" in agent.log():
        fail("the worker died: " + agent.log())
    if not os.path.exists(os.path.join(agent.folder, "spool", "n1", "definitions.aon")):
        fail("no definitions")
print("ok")
