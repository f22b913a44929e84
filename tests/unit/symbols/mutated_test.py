#!/usr/bin/python3
"""Programs with bytes changed at random in their headers, tables and debug information: each lookup
ends by itself within its limits, in an answer or a reason, and libdw's crashes stay in the helper.

    mutated_test.py symbols_lookup FOLDER_OF_PROGRAMS [COUNT]
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

LOOKUP, MADE = sys.argv[1], pathlib.Path(sys.argv[2])
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 150
PROGRAMS = ("cpp_dwarf4", "cpp_dwarf5", "c_packed", "c_pie")
BORDERS = (b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80")
LIMIT_S = 30  # the helper's own limit is 10


def places(program):
    """[(first, last)] of the bytes worth changing: headers and sections that are read."""
    output = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True).stdout
    found = [(0, 1024), (os.path.getsize(program) - 64 * 40, os.path.getsize(program))]
    for name, offset, count in re.findall(
        r"\] (\.\S+) +\S+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", output
    ):
        if re.match(r"\.(debug|symtab|strtab|dynsym|note|plt|rela|gnu_debug)", name):
            found.append((int(offset, 16), int(offset, 16) + int(count, 16)))
    return [(first, last) for first, last in found if last > first]


def mutated(original, regions, dice):
    data = bytearray(original)
    for _ in range(dice.randint(1, 8)):
        first, last = dice.choice(regions)
        at = dice.randrange(first, min(last, len(data)))
        value = dice.choice((*BORDERS, bytes([dice.randrange(256)])))
        data[at : at + len(value)] = value
    if dice.random() < 0.1:
        del data[dice.randrange(len(data)) :]
    return bytes(data)


class Symbols(unittest.TestCase):
    def test_mutated_programs_end_in_an_answer_or_a_reason(self):
        dice = random.Random(20240229)
        crashes = 0
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            path = pathlib.Path(folder) / "program"
            for name in PROGRAMS:
                original = (MADE / name).read_bytes()
                regions = places(MADE / name)
                asked = "\n".join(f"{0x1000 + 8 * i:x}" for i in range(256))
                for number in range(COUNT):
                    path.write_bytes(mutated(original, regions, dice))
                    done = subprocess.run(
                        [LOOKUP, path],
                        input=asked,
                        capture_output=True,
                        text=True,
                        errors="replace",
                        timeout=LIMIT_S,
                    )
                    self.assertIn(done.returncode, (0, 3), f"{name} {number}: {done.stderr}")
                    if done.returncode == 3:
                        self.assertIn("symbols_lookup: ", done.stderr)
                    crashes += "crashed" in done.stderr
        print(f"{COUNT * len(PROGRAMS)} programs, {crashes} in which the reader crashed")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
