#!/usr/bin/python3
"""The cost claim as a check on generated code.

    check_machine_code.py libaon.so WRAPPERS.so [libaon-mpi.so]

WRAPPERS.so is tests/bench/hotpath/wrappers.cpp, what a wrapper is at least.

1. What is preloaded imports no __tls_get_addr and needs nothing but libc and libaon.so.
2. The fast path of a wrapper, from its entry to its return when all goes well, has no lock prefix,
   no fence, and no call but the one to the real function.
   The same of an annotation's begin and end in libaon.so, without any call.
3. A call that is only counted or paused reaches the real function without a frame: by a jump.
4. What reads hardware counters at the borders of calls makes no system call.
5. What 2 and 3 say holds of MPI_Send, MPI_Isend and MPI_Wait as they are: beside the real function
   they call at most what keeps a request or takes it out, and that has no lock prefix either, also
   where it looks into a table.
"""
import re
import subprocess
import sys

ALLOWED_LIBRARIES = re.compile(r"^(libc\.so\.6|libaon\.so)$")
STARTING_CALLS = ("void aon::mpi::put_started<",)
COMPLETING_CALLS = ("aon::mpi::claim_request", "aon::mpi::complete_claimed")
WHOLE_CALLS = ("void aon::mpi::put_started<", "aon::mpi::claim_request")
FORBIDDEN = re.compile(r"^(lock |xchg .*\(|mfence|lfence|sfence|syscall)")
COUNTER_FUNCTIONS = ("read_thread_counters", "read_counters_at_entry", "put_counters",
                     "put_border_counters")
# The clock of machines without a steady TSC is read in the kernel's own library.
ALLOWED_CALLS = re.compile(
    r"<((void )?aon::|aon_writer_put@plt|clock_gettime@plt|mem(cpy|set)@plt|__stack_chk_fail@plt)")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_imports(library):
    """Errors of a library's dynamic section."""
    errors = []
    if "__tls_get_addr" in output_of("nm", "-D", library):
        errors.append(f"{library} calls __tls_get_addr: build it with -ftls-model=initial-exec")
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", library)):
        if not ALLOWED_LIBRARIES.match(name):
            errors.append(f"{library} needs {name}: application code links libc and libaon only")
    return errors


def functions(library):
    """{demangled name: [(address, instruction)]} of the whole library."""
    found, current = {}, None
    text = output_of("objdump", "-d", "-C", "--no-show-raw-insn", library)
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if head:
            current = found.setdefault(head[1], [])
            continue
        body = re.match(r"^\s+([0-9a-f]+):\s+(.*?)\s*(#.*)?$", line)
        if body and current is not None:
            current.append((int(body[1], 16), body[2]))
    return found


def fast_path(code):
    """The instructions from the entry to the first return, conditional jumps not taken. Slow paths
    are laid out behind it: that is what AON_UNLIKELY is for."""
    index = {address: i for i, (address, _) in enumerate(code)}
    path, at = [], 0
    while at < len(code) and len(path) < 1000:
        text = code[at][1]
        path.append(text)
        if text.startswith("ret"):
            break
        jump = re.match(r"jmp\s+([0-9a-f]+)", text)
        if jump:
            if int(jump[1], 16) not in index:
                break  # to another function
            at = index[int(jump[1], 16)]
        elif text.startswith("jmp"):
            break  # through a pointer
        else:
            at += 1
    return path


def check_recorded(name, code):
    path = fast_path(code)
    errors = [f"{name}: `{text}` on the fast path" for text in path if FORBIDDEN.match(text)]
    calls = [text for text in path if text.startswith("call")]
    direct = [text for text in calls if "*" not in text]
    if direct:
        errors.append(f"{name}: calls {direct} on the fast path")
    is_single = "event" in name or "region" in name
    if len(calls) != (0 if is_single else 1):
        errors.append(f"{name}: {len(calls)} calls on the fast path: {calls}")
    clocks = sum(text.startswith("rdtsc") for text in path)
    if clocks != (1 if is_single else 2):
        errors.append(f"{name}: reads the clock {clocks} times")
    if len(path) > 130:
        errors.append(f"{name}: {len(path)} instructions on the fast path")
    print(f"{name}: {len(path)} instructions, {clocks} clock reads")
    return errors


def without_lock(code, name):
    """What of a function that keeps or takes a request must have none: all of it, for its locked
    ways are functions of their own, and what it jumps to."""
    if not name.startswith(WHOLE_CALLS):
        return fast_path(code[name])
    bodies = [n for n in code if re.search(r"::(put_started_in_table<|claim_anywhere\()", n)]
    bodies = [name, *(n for n in bodies if ".cold" not in n)]
    return [text for body in bodies for _, text in code[body]]


def check_mpi(code, name, allowed_calls):
    """The wrapper `name` of libaon-mpi.so: its entry while calls are counted, and while they are
    recorded."""
    errors, bodies = check_forwarded(name, code[name]), []
    for part in ("plan", "record"):  # those of Fortran have their arguments in an array
        wanted = f"::{part}_{name.removeprefix('MPI_')}(void"
        found = [n for n in code if wanted in n and ".cold" not in n and "(void* const*" not in n]
        if len(found) != 1:
            return [*errors, f"{wanted} is not in libaon-mpi.so once: {found}"]
        bodies += found
    errors += check_forwarded(bodies[0], code[bodies[0]])
    path = fast_path(code[bodies[1]])
    errors += [f"{name}: `{text}` on the fast path" for text in path if FORBIDDEN.match(text)]
    calls = [text for text in path if text.startswith("call")]
    if len([text for text in calls if re.match(r"call\s+\*", text)]) != 1:
        errors.append(f"{name}: not one call of the real function: {calls}")
    for text in calls:
        called = re.match(r"call\s+[0-9a-f]+ <(.*)>$", text)
        if called is None:
            continue
        if called[1].split("(")[0] not in allowed_calls:
            errors.append(f"{name}: `{text}` on the fast path")
            continue
        errors += [f"{name}, {called[1]}: `{inner}`" for inner in without_lock(code, called[1])
                   if FORBIDDEN.match(inner)]
    clocks = sum(text.startswith("rdtsc") for text in path)
    if clocks != 2:
        errors.append(f"{name}: reads the clock {clocks} times")
    if len(path) > 220:
        errors.append(f"{name}: {len(path)} instructions on the fast path")
    print(f"{name}: {len(path)} instructions, {len(calls)} calls, {clocks} clock reads")
    return errors


def check_forwarded(name, code):
    path = fast_path(code)
    errors = [f"{name}: `{text}`" for text in path if FORBIDDEN.match(text)]
    errors += [f"{name}: `{text}`" for text in path if text.startswith(("call", "rdtsc"))]
    if not path[-1].startswith("jmp"):
        errors.append(f"{name}: ends with `{path[-1]}`, not with a jump to the real function")
    print(f"{name}: {len(path)} instructions")
    return errors


def check_readings(code):
    errors = []
    for wanted in COUNTER_FUNCTIONS:
        found = [n for n in code if f"::{wanted}(" in n and ".cold" not in n]
        if len(found) != 1:
            errors.append(f"{wanted} is not there once: {found}")
            continue
        for _, text in code[found[0]]:
            # Through a pointer: the registers of a test program.
            is_call = text.startswith("call") and "*" not in text
            if text.startswith("syscall") or (is_call and not ALLOWED_CALLS.search(text)):
                errors.append(f"{wanted}: `{text}`")
        print(f"{wanted}: {len(code[found[0]])} instructions")
    return errors


def main():
    libaon, wrappers = sys.argv[1:3]
    errors = check_imports(libaon) + check_imports(wrappers)
    code = functions(wrappers)
    full = [n for n in code if "record_full<" in n and "kRecorded" in n]
    if len(full) != 1:
        sys.exit(f"record_full of the recorded wrapper is not there once: {full}")
    errors += check_recorded(full[0], code[full[0]])
    errors += check_recorded("hotpath_event", code["hotpath_event"])
    own = functions(libaon)
    for name in ("begin(aon_region", "end(aon_region"):
        found = [n for n in own if f"::{name}" in n and ".cold" not in n]
        if len(found) != 1:
            sys.exit(f"{name} of annotations is not in {libaon} once: {found}")
        errors += check_recorded(found[0], own[found[0]])
    errors += check_readings(own)
    for name in ("hotpath_counted", "hotpath_paused"):
        errors += check_forwarded(name, code[name])
    for library in sys.argv[3:]:
        errors += check_imports(library)
        of_mpi = functions(library)
        errors += check_mpi(of_mpi, "MPI_Send", ())
        errors += check_mpi(of_mpi, "MPI_Isend", STARTING_CALLS)
        errors += check_mpi(of_mpi, "MPI_Wait", COMPLETING_CALLS)
    for error in errors:
        print(f"error: {error}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
