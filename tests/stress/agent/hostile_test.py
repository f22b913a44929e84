"""Hostile processes scribble over their rings while the same agent serves an honest one: the
honest one's records are all there, and the agent's worker never died. AON_AGENT names another
agent (one built with sanitizers)."""

import os
import re
import subprocess
from signal import SIGUSR1

from agent_run import AGENT, BUILD, Agent, emitted, fail

NAMES = {"first chunk out of range", "next chunk out of range", "chunk of another stream",
         "chunk out of sequence", "committed bytes not plausible"}  # core/ring/reader.cpp
HOSTILE = os.path.join(BUILD, "bin", "agent_hostile")

with Agent("-v", "--flush-ms=50", program=os.environ.get("AON_AGENT", AGENT)) as agent:
    environment = dict(os.environ, AON_SOCKET=agent.socket, AON_OUTPUT=agent.folder)
    honest = agent.emitter(1, 0, 100, 1000)  # to the end: the agent stays for it
    for batch in range(2):
        hostile = [subprocess.Popen([HOSTILE, str(10 * batch + seed), "2"], env=environment)
                   for seed in range(4)]
        codes = [process.wait() for process in hostile]
        if any(codes):
            fail(f"hostile processes: {codes}")
    honest.send_signal(SIGUSR1)
    accepted, refused = emitted(honest)
    if agent.wait() != 0:
        fail(agent.log())
    _, processes, _, text = agent.count()
    print(text.strip())
    values = next(p for p in processes.values() if p["pid"] == honest.pid)
    if (values["decoded"], values["refused"]) != (accepted, refused):
        fail(f"the honest process emitted {accepted}")
    # What was scribbled is cut off where it stops making sense, and that place has a name.
    log = agent.log()
    cuts = re.findall(r"process (\d+) slot \d+: stream cut, (.+)", log)
    if not cuts:
        fail("no stream of a hostile process was cut: " + log)
    names = {name.strip() for _, name in cuts}
    if not names <= NAMES:
        fail(f"cuts without a name: {names - NAMES}")
    pids = {number: entry["pid"] for number, entry in processes.items()}
    if any(pids.get(int(number)) == honest.pid for number, _ in cuts):
        fail("the honest process was cut")
    if "was killed" in agent.log():
        fail("the worker died: " + agent.log())
    if not os.path.exists(os.path.join(agent.folder, "spool", "n1", "definitions.aon")):
        fail("no definitions")
print("ok")
