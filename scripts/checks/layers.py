"""The dependency rule: who may include whom. The CMake targets say the same; this tells it early,
per line.

Plugins see core/include and themselves; nvml and gpu_counters also what the providers of
plugins/node have in common. Writers see core/include, core/base, core/spool, core/clock,
core/topology, writers/writer.h, writers/state.h, writers/external_id.h, writers/share,
writers/profile, writers/lateness, writers/waits, writers/steps, writers/nccl and themselves.
writers/assemble drives all writers and drains rings that no agent drained. Core sees neither.
Launcher and tools sit on top.
"""
import re

from common import Finding

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
_OURS = ("core/", "plugins/", "bindings/", "writers/", "launcher/", "tools/", "tests/")

# Folder of the including file (longest match wins) -> prefixes of our own paths it may include.
RULES = {
    "core/include/": ["core/include/aon/"],
    "core/ring/": ["core/include/aon/", "core/base/", "core/ring/"],
    "core/base/": ["core/include/aon/", "core/base/"],
    "core/clock/": ["core/include/aon/", "core/base/", "core/clock/"],
    "core/topology/": ["core/include/aon/", "core/base/", "core/topology/"],
    "core/spool/": ["core/include/aon/", "core/base/", "core/ring/", "core/clock/", "core/spool/"],
    "core/runtime/": [
        "core/include/aon/",
        "core/ring/",
        "core/clock/",
        "core/runtime/",
        "core/agent/protocol.h",
        "core/base/disable.h",
    ],
    "core/provider/": ["core/include/aon/", "core/base/", "core/provider/"],
    "core/unwind/": ["core/include/aon/", "core/base/", "core/unwind/"],
    "core/": ["core/"],
    "plugins/": ["core/include/aon/", "plugins/{self}/"],
    "plugins/gpu_counters/": ["core/include/aon/", "plugins/node/", "plugins/gpu_counters/"],
    "plugins/nvml/": ["core/include/aon/", "plugins/node/", "plugins/nvml/"],
    "bindings/": ["core/include/aon/"],
    "writers/": [
        "core/include/aon/",
        "core/base/",
        "core/spool/",
        "core/clock/",
        "core/topology/",
        "writers/writer.h",
        "writers/state.h",
        "writers/external_id.h",
        "writers/share/",
        "writers/profile/",
        "writers/lateness/",
        "writers/waits/",
        "writers/steps/",
        "writers/devices/",
        "writers/nccl/",
        "writers/{self}/",
    ],
    "writers/assemble/": ["core/", "writers/"],
    "launcher/": ["core/", "launcher/"],
    "tools/": ["core/", "writers/", "tools/", "launcher/"],
}


def _target(path, bracket, name):
    """Path of an include of ours from the root; None for somebody else's. Plugins do not see the
    root: their own includes start in plugins/."""
    if name.startswith("aon/"):
        return "core/include/" + name
    if bracket == "<":
        return None
    if path.startswith("plugins/") and not name.startswith(_OURS):
        return "plugins/" + name
    return name


def allowed(path, target):
    folders = [f for f in RULES if path.startswith(f)]
    if not folders:
        return True
    rule = RULES[max(folders, key=len)]
    self_folder = path.split("/")[1]
    return any(target.startswith(prefix.replace("{self}", self_folder)) for prefix in rule)


def check(sources, exceptions):
    for source in sources:
        if not source.is_c:
            continue
        for number, line in enumerate(source.lines, 1):
            match = _INCLUDE.match(line)
            target = _target(source.path, *match.groups()) if match else None
            if target is None or ("layers", f"{source.path}:{target}") in exceptions:
                continue
            if not target.startswith(_OURS):
                yield Finding(source.path, number, f'include "{target}" by its path from the root')
            elif not allowed(source.path, target):
                yield Finding(
                    source.path,
                    number,
                    f"{source.path.rsplit('/', 1)[0]} may not include {target} (layers.py)",
                )
