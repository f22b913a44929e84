#!/usr/bin/python3
"""Runs the project's own checks: layers, order, ceilings, texts, and symbols of a build.

    scripts/checks/run.py [--build DIR]       exit 1 when anything was found
"""
import argparse
import pathlib
import sys

import ceilings
import layers
import order
import symbols
import texts
from common import load_exceptions, load_sources


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path)
    build = parser.parse_args().build
    sources = load_sources()
    exceptions = load_exceptions()
    results = {
        "layers": list(layers.check(sources, exceptions)),
        "order": list(order.check(sources, exceptions)),
        "ceilings": list(ceilings.check(sources, exceptions)),
        "texts": list(texts.check(sources, exceptions)) + list(texts.check_places(exceptions)),
    }
    if build and build.is_dir():
        results["symbols"] = list(symbols.check_build(build))
    for name, findings in results.items():
        for finding in findings:
            print(f"{finding}  [{name}]")
        print(f"check: {name}: {'ok' if not findings else f'{len(findings)} findings'}")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
