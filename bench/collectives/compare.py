#!/usr/bin/env python3
"""Compares collectives.cc with torch's gloo and with MPI, which run alternately.

Usage: compare.py PROGRAM [--python=PYTHON] [--torch-backend] [--pool] [--mpi]
                  [--intel-mpi=FOLDER] [--oneccl=FOLDER] [--no-gloo]
                  [--rounds=3] [--ranks=2] [--operations=...] [--sizes=...]
                  [--transport=host] [--fresh] [--json=FILE]

PROGRAM is bazel-bin/bench/collectives/collectives. PYTHON has torch. With
--torch-backend, PYTHON also has penstock.torch, which takes turns with both.
--pool adds a run of PROGRAM --pool. --mpi adds Open MPI and MPICH, if Debian's
packages are installed (libopenmpi-dev, openmpi-bin, libmpich-dev, mpich).
--intel-mpi adds Intel MPI from FOLDER, a virtual environment with PyPI's
packages impi-rt and impi-devel. --oneccl adds oneCCL from a FOLDER that also has
oneccl and oneccl-devel.
With --fresh, ranks write their input before each repetition, as programs do; not
with gloo and PyTorch.
Prints for each operation and size the median of the runs' medians in
microseconds, and the speed-up of each library over the first one. --json writes
the medians to a file, which latency_page.py draws.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
# The commands by which each MPI library starts the ranks of one host, as root
# and with more ranks than cores.
MPIRUN = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "mpich": ["mpirun.mpich"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--torch-backend", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--operations", default="all_reduce,broadcast,barrier")
    parser.add_argument("--sizes",
                        default="8,1024,65536,1048576,4194304,67108864")
    parser.add_argument("--transport", default="host")
    parser.add_argument("--pool", action="store_true")
    parser.add_argument("--mpi", action="store_true")
    parser.add_argument("--intel-mpi")
    parser.add_argument("--oneccl")
    parser.add_argument("--no-gloo", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.fresh and (options.torch_backend or not options.no_gloo):
        parser.error("--fresh needs --no-gloo, and no --torch-backend")
    with tempfile.TemporaryDirectory() as folder:
        commands = commands_of(options, folder)
        medians = medians_of(run(commands, options.rounds))
    show(list(commands), medians)
    if options.json:
        write(medians, int(options.ranks), options.json)


def commands_of(options, folder):
    """Returns the command of each library. The first is the reference."""
    flags = [f"--{name}={getattr(options, name)}"
             for name in ("ranks", "operations", "sizes")]
    own = [options.program, f"--transport={options.transport}"] + flags
    if options.fresh:
        own.append("--fresh")
    pytorch = [options.python, str(FOLDER / "pytorch.py")]
    commands = {}
    if not options.no_gloo:
        commands["gloo"] = pytorch + ["--backend=gloo"] + flags
    if options.mpi:
        for library in MPIRUN:
            if shutil.which(f"mpicc.{library}"):
                commands[library] = mpi_command(library, options, folder)
    if options.intel_mpi:
        commands["intelmpi"] = intel_mpi_command(options, folder)
    if options.oneccl:
        commands["oneccl"] = oneccl_command(options, folder)
    commands["penstock"] = own
    if options.pool:
        commands["penstock --pool"] = own + ["--pool"]
    if options.torch_backend:
        commands["penstock.torch"] = pytorch + ["--backend=penstock"] + flags
    return commands


def mpi_command(library, options, folder):
    """Compiles mpi.c, and returns the command that runs it."""
    program = os.path.join(folder, library)
    subprocess.run([f"mpicc.{library}", "-O2", "-Wall", "-o", program,
                    str(FOLDER / "mpi.c")], check=True)
    return (MPIRUN[library] + ["-n", options.ranks, program]
            + mpi_arguments(library, options))


def mpi_arguments(library, options):
    return ([library, options.operations, options.sizes]
            + (["fresh"] if options.fresh else []))


def intel_mpi_command(options, folder):
    """Compiles mpi.c without Intel's wrapper, which requires Intel's
    compiler."""
    root = pathlib.Path(options.intel_mpi).resolve()
    program = os.path.join(folder, "intelmpi")
    subprocess.run(["cc", "-O2", "-Wall", f"-I{root}/include", "-o", program,
                    str(FOLDER / "mpi.c"), f"-L{root}/lib", "-lmpi",
                    f"-Wl,-rpath,{root}/lib"], check=True)
    return intel_mpirun(root, options, program, "intelmpi")


def intel_mpirun(root, options, program, library, *variables):
    # Does not pin ranks to cores, because the other libraries do not either.
    return ["env", f"PATH={root}/bin:{os.environ['PATH']}",
            f"I_MPI_ROOT={root}", "I_MPI_FABRICS=shm", "I_MPI_PIN=0",
            *variables, "mpirun", "-n", options.ranks, program,
            *mpi_arguments(library, options)]


def oneccl_command(options, folder):
    """Compiles mpi.c and ccl.cc, and returns the command that runs them."""
    root = pathlib.Path(options.oneccl).resolve()
    program = os.path.join(folder, "oneccl")
    compiled = os.path.join(folder, "mpi.o")
    subprocess.run(["cc", "-O2", "-Wall", "-DPENSTOCK_CCL",
                    f"-I{root}/include", "-c", "-o", compiled,
                    str(FOLDER / "mpi.c")], check=True)
    subprocess.run(["c++", "-O2", "-Wall", "-std=c++17", f"-I{root}/include",
                    "-o", program, str(FOLDER / "ccl.cc"), compiled,
                    f"-L{root}/lib", "-lccl", "-lmpi",
                    f"-Wl,-rpath-link,{root}/lib"], check=True)
    # Disables oneCCL's own threads. With them, ranks on two cores wait for each
    # other's time slices.
    return intel_mpirun(root, options, program, "oneccl",
                        f"LD_LIBRARY_PATH={root}/lib", f"CCL_ROOT={root}",
                        "CCL_ATL_TRANSPORT=mpi", "CCL_WORKER_OFFLOAD=0")


def run(commands, rounds):
    """Returns the times of each library, by operation and bytes."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(rounds):
        for library, command in commands.items():
            said = subprocess.run(command, check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            for row in rows_of(said):
                times[row["operation"], row["bytes"]][library].append(
                    row["p50_us"])
    return times


def rows_of(said):
    """Returns the measurements. oneCCL also writes warnings."""
    return [json.loads(line) for line in said.splitlines()
            if line.startswith("{")]


def medians_of(times):
    """Returns the medians, by operation and bytes, and then by library."""
    return {key: {library: statistics.median(runs)
                  for library, runs in found.items()}
            for key, found in times.items()}


def write(medians, ranks, path):
    """Writes one object for each operation, size and library."""
    rows = [{"library": library, "operation": operation, "ranks": ranks,
             "bytes": size, "p50_us": p50}
            for (operation, size), found in medians.items()
            for library, p50 in found.items()]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)


def show(libraries, medians):
    reference, *others = libraries
    print(f"{'operation':12} {'bytes':>10} {reference:>12}"
          + "".join(f" {library:>15} {'ratio':>7}" for library in others))
    for (operation, size), p50 in medians.items():
        print(f"{operation:12} {size:10} {p50[reference]:12.2f}"
              + "".join(f" {p50[library]:15.2f} "
                        f"{p50[reference] / p50[library]:7.1f}"
                        for library in others))


if __name__ == "__main__":
    main()
