#!/usr/bin/env -S python3 -B
"""Runs gRPC's own benchmark (test/cpp/qps), alternately stock and over
Penstock.

  bazel run //bench/grpc_qps -- --quick
  bazel-bin/bench/grpc_qps/grpc_qps --filter='from-client-async-0B-1x1$'
  bazel-bin/bench/grpc_qps/grpc_qps --rounds=5 --seconds=3   # all, for hours

Server and client are gRPC's own programs, started for each cell. The only
change is Penstock's one line where a program makes a server or a channel. A
scenario is KIND-API-SIZE-CHANNELSxOUTSTANDING, with the prefix "secure-" for
TLS. Requests and replies have SIZE bytes. The columns are:

  calls/s  gRPC's figure; for one-way streams, the messages that the writer has
           handed over
  read/s   for one-way streams, the messages that the reader has read; else the
           same as calls/s
  CPU us   the time of both processes per call, including the kernel
  last     read/s divided by that of tcp (stock gRPC) in the same round: median
           (smallest-largest)
"""

import argparse
import json
import pathlib
import re
import sys

import programs
import scenarios
import table


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true",
                        help="the scenarios' names, and nothing else")
    parser.add_argument("--quick", action="store_true",
                        help="a few scenarios, for one second each, once")
    parser.add_argument("--filter", default="", metavar="REGEX",
                        help="only scenarios in whose names this is found")
    parser.add_argument("--transports", default=",".join(programs.FABRICS),
                        help="of tcp (stock), penstock-tcp, shm")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=int, help="for each cell")
    parser.add_argument("--warmup", type=int, default=1, help="seconds")
    parser.add_argument("--json", metavar="FILE",
                        help="also write what gRPC says of each cell")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (1 if options.quick else 2)
    options.transports = options.transports.split(",")
    for name in options.transports:
        if name not in programs.FABRICS:
            parser.error(f"--transports: there is no {name}")
    return options


def chosen(options):
    found = [scenario for scenario in scenarios.all_scenarios()
             if re.search(options.filter, scenario.name) and
             (not options.quick or scenario.name in scenarios.QUICK)]
    if not found:
        sys.exit(f"no scenario has {options.filter!r} in its name; --list "
                 "shows all")
    return found


def measure(options, found):
    """Returns {(scenario, transport): Figures} and gRPC's output."""
    folder = pathlib.Path(sys.argv[0]).absolute().parent
    measured = {(scenario.name, transport): table.Figures()
                for scenario in found for transport in options.transports}
    said = []
    for turn in range(options.rounds):
        # Rotates the order of the transports, so that a disturbance affects all
        # of them alike.
        order = options.transports[turn % len(options.transports):] + \
            options.transports[:turn % len(options.transports)]
        for scenario in found:
            for transport in order:
                result = programs.Cell(folder, transport).measure(
                    scenario.to_grpc(options.warmup, options.seconds))
                measured[scenario.name, transport].add(turn, result)
                said.append({"transport": transport, "round": turn, **result})
            print(f"round {turn + 1} of {options.rounds}: {scenario.name}",
                  file=sys.stderr, flush=True)
    return measured, said


def main():
    options = parse(sys.argv[1:])
    found = chosen(options)
    if options.list:
        print(*(scenario.name for scenario in found), sep="\n")
        return
    try:
        measured, said = measure(options, found)
    except programs.CellFailed as problem:
        sys.exit(f"grpc_qps: {problem}")
    print(table.render(measured))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(said),
                                              encoding="utf-8")


if __name__ == "__main__":
    main()
