"""What bench/links measures: links, settings and calls."""

import collections

KIB, MIB = 1 << 10, 1 << 20

# MB/s (10^6 bytes) each way, 0: as fast as the machine; milliseconds each way;
# per cent of packets.
Link = collections.namedtuple("Link", "rate delay_ms loss")
LINKS = (
    Link(1, 0, 0), Link(1, 10, 0),
    Link(10, 0, 0), Link(10, 1, 0), Link(10, 10, 0), Link(10, 1, 0.1),
    Link(100, 0, 0), Link(100, 1, 0), Link(100, 10, 0),
    Link(0, 0, 0), Link(0, 1, 0), Link(0, 10, 0), Link(0, 1, 0.1),
)
# Soft-RoCE in the machine makes 34 MB/s: a link of 100 is one without a limit.
VERBS_RATES = (0, 1, 10)

# A run of bench/rpc. `scored`: sizes whose figures count.
Run = collections.namedtuple("Run", "benchmark sizes scored rpcs window")
# How a group of settings is varied: the variable, its values, the runs that
# show it, and the RPCs with which the adaptive one settles. Others need only
# those with which TCP does.
Group = collections.namedtuple("Group", "variable values runs settling others")

CHUNKS = Group(
    "PENSTOCK_CHUNK", (16 * KIB, 64 * KIB, 256 * KIB, MIB),
    # Tiny calls beside a large one that is always under way.
    (Run("beside", (256 * KIB, MIB), None, 4, 1),),
    settling=100, others=5)
# One frame has 16,352 bytes. The size that is not scored is for the tuner, which
# compares with what is announced.
FRAME = 16352
EAGER = Group(
    "PENSTOCK_EAGER_MAX", (4096, FRAME, 4 * FRAME, 8 * FRAME),
    (Run("latency", (6 * KIB, 14 * KIB, 30 * KIB, 60 * KIB, 120 * KIB,
                     256 * KIB),
         (6 * KIB, 14 * KIB, 30 * KIB, 60 * KIB, 120 * KIB), 30, 1),
     # Tiny calls beside one that may be eager.
     Run("beside", (60 * KIB, 120 * KIB), None, 4, 1)),
    settling=400, others=12)

GROUPS = {"chunk": CHUNKS, "eager": EAGER}
ADAPTIVE = "adaptive"


def name_of(link):
    words = [f"{link.rate} MB/s" if link.rate else "unlimited",
             f"{link.delay_ms} ms"]
    if link.loss:
        words.append(f"{link.loss} % lost")
    return ", ".join(words)


def links_of(fabric):
    if fabric == "shm":
        return ("memory",)
    return tuple(name_of(link) for link in LINKS
                 if fabric != "verbs" or link.rate in VERBS_RATES)


def link_named(name):
    return next(link for link in LINKS if name_of(link) == name)


def settings_of(group):
    """{name: environment}, the adaptive one first."""
    settings = {ADAPTIVE: {}}
    for value in group.values:
        settings[size_name(value)] = {group.variable: str(value)}
    return settings


def size_name(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def samples_of(run, cells):
    """{what: (microseconds, the smaller the better)} of bench/rpc's JSON."""
    samples = {}
    for cell in cells:
        if cell["bytes"] not in (run.scored or run.sizes):
            continue
        name = f"{run.benchmark} {size_name(cell['bytes'])}"
        if run.benchmark == "beside":
            # As one waits for the next, most tiny calls are made where there
            # is nothing to wait behind: their median does not show it.
            samples[f"{name}, tiny"] = cell["p99_us"]
            samples[f"{name}, a MB"] = 1e6 / cell["mb_per_s"]
        else:
            samples[name] = cell["p50_us"]
    return samples
