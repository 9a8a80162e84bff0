"""Runs an unmodified program of grpcio's over penstock.grpc.

    python3 -m penstock.grpc PROGRAM [ARGUMENTS...]
    python3 -m penstock.grpc -m MODULE [ARGUMENTS...]

Processes that the program starts are not changed, except forked ones.
"""

import os
import runpy
import sys

import penstock.grpc


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments == ["-m"] or (
            arguments[0].startswith("-") and arguments[0] != "-m"):
        sys.exit(__doc__.strip())
    penstock.grpc.install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
