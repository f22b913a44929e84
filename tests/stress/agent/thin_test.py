"""A process writes, ends, and everything is in the spool; exit codes and signals are told."""

from agent_run import Agent, emitted, fail

with Agent() as agent:
    runs = [agent.emitter(2, 20000, 100, 1000), agent.emitter(1, 5000, 100, 1000, "exit7"),
            agent.emitter(1, 5000, 100, 1000, "kill")]
    totals = [emitted(run) for run in runs]
    codes = [run.wait() for run in runs]
    if agent.wait() != 0:
        fail("agent: " + agent.log())
    status, processes, _, text = agent.count()
    print(text)
    if status != 0:
        fail("spool does not add up")
    for run, (accepted, refused), code in zip(runs, totals, codes):
        values = next(p for p in processes.values() if p["pid"] == run.pid)
        if values["committed"] != accepted or values["refused"] != refused:
            fail(f"pid {run.pid}: {accepted} {refused}")
        if values["exit"] != (code if code >= 0 else -1) or values["signal"] != max(0, -code):
            fail(f"pid {run.pid}: exit {code}")
print("ok")
