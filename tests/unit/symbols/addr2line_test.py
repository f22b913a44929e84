#!/usr/bin/python3
"""1000 addresses of a large C++ program with lines: the same functions, files and lines as
addr2line (binutils) and eu-addr2line (elfutils) tell, inlined ones included.

    addr2line_test.py symbols_lookup PROGRAM

The two disagree with each other now and then, at places where more than one answer is right (two
names of one address, code shared by functions). So an address is right when one of them says the
same, and more than one in a hundred that both contradict is a failure.
"""
import os
import re
import subprocess
import sys
import unittest

LOOKUP, PROGRAM = sys.argv[1:3]
COUNT = 1000


def text_section():
    """(address, bytes) of .text."""
    output = subprocess.run(["readelf", "-SW", PROGRAM], capture_output=True, text=True).stdout
    match = re.search(r" \.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", output)
    return int(match[1], 16), int(match[2], 16)


def addresses():
    begin, count = text_section()
    return [f"0x{begin + count * i // COUNT:x}" for i in range(COUNT)]


CUT = "..."  # behind 4096 bytes


def bare(function):
    """A function's last name: the debug information has no more of it at -g1, and demanglers spell
    parameters in their own ways. CUT for one of which AON has the beginning only."""
    if function.endswith(CUT):
        return CUT
    function = function.replace("(anonymous namespace)", "").replace("{lambda()", "{lambda")
    function = re.sub(r"\boperator(\(\)|[^\w\s(]+)", "operator", function)
    function = re.sub(r" \[clone .*|\.(?:cold|part|isra|constprop)\S*", "", function)
    for brackets in (r"<[^<>]*>", r"\([^()]*\)"):
        before = None
        while before != function:
            before, function = function, re.sub(brackets, "", function)
    return re.sub(r"(?: const| \[\S+\])*$", "", function).split("::")[-1].split(" ")[-1]


def frame(function, place):
    """A function and its place, in a form that all three agree on: files without folder."""
    file, _, line = place.partition(":")
    line = line.split(" ")[0].split(":")[0]
    file = "" if file == "??" else os.path.basename(file)
    return (bare(function).strip("?"), file, line if line != "?" else "0")


def of_tool(command):
    """[[frame, ...], ...] as addr2line -a prints them."""
    output = subprocess.run(command, input="\n".join(addresses()), capture_output=True, text=True)
    chains = []
    lines = iter(output.stdout.split("\n"))
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            chains.append([])
        elif line:
            chains[-1].append(frame(line.split(" inlined at ")[0], next(lines)))
    return chains


def ours():
    asked = "\n".join(addresses())
    done = subprocess.run([LOOKUP, PROGRAM], input=asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    chains = []
    for line in done.stdout.split("\n")[:-1]:
        frames = [part.rpartition("|") for part in re.split(r"(?<=:\d);|(?<=\d);", line) if part]
        chains.append([frame(function, place) for function, _, place in frames])
    return chains


class Symbols(unittest.TestCase):
    def test_functions_files_and_lines_are_those_of_addr2line(self):
        mine = ours()
        theirs = [
            of_tool(["addr2line", "-a", "-f", "-i", "-C", "-e", PROGRAM]),
            of_tool(["eu-addr2line", "-a", "-f", "-i", "-C", "-e", PROGRAM]),
        ]
        self.assertEqual([len(chains) for chains in theirs], [COUNT, COUNT])
        self.assertEqual(len(mine), COUNT)
        whole = [not any(function == CUT for function, _, _ in chain) for chain in mine]
        self.assertGreater(sum(whole), COUNT * 9 // 10)
        for what, of in (
            ("functions", lambda chain: [f for f, _, _ in chain if f][-1:]),
            ("chains", lambda chain: [f for f, _, _ in chain if f]),
            ("places", lambda chain: [(file, line) for _, file, line in chain if file][:1]),
        ):
            wrong = [
                (address, of(a), *(of(chains[i]) for chains in theirs))
                for i, (address, a) in enumerate(zip(addresses(), mine))
                if whole[i] and all(of(chains[i]) != of(a) for chains in theirs)
            ]
            self.assertLessEqual(len(wrong), COUNT // 100, f"{what}: {wrong[:10]}")
        named = sum(1 for chain in mine if chain and chain[-1][0])
        self.assertGreater(named, COUNT * 9 // 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
