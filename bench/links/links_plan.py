"""The links, settings and calls that bench/links measures."""

import collections

KIB, MIB = 1 << 10, 1 << 20

# A link: the rate in MB/s (10^6 bytes) per direction, where 0 is unlimited; the
# delay in milliseconds per direction; and the loss in per cent of packets.
Link = collections.namedtuple("Link", "rate delay_ms loss")
LINKS = (
    Link(1, 0, 0), Link(1, 10, 0),
    Link(10, 0, 0), Link(10, 1, 0), Link(10, 10, 0), Link(10, 1, 0.1),
    Link(100, 0, 0), Link(100, 1, 0), Link(100, 10, 0),
    Link(0, 0, 0), Link(0, 1, 0), Link(0, 10, 0), Link(0, 1, 0.1),
)
# The rates for verbs, in MB/s; 0 is unlimited. Soft-RoCE in the machine reaches
# 34 MB/s, so a limit of 100 MB/s would have no effect.
VERBS_RATES = (0, 1, 10)

# A run of bench/rpc. `scored` lists the message sizes whose times count.
Run = collections.namedtuple("Run", "benchmark sizes scored rpcs window")
# A group of settings: the variable, its values, and the runs that show the
# effect. `settling` is the number of warm-up RPCs for the adaptive setting,
# until its tuner settles. `others` is the smaller number for a fixed setting,
# until TCP settles.
Group = collections.namedtuple("Group", "variable values runs settling others")

CHUNKS = Group(
    "PENSTOCK_CHUNK", (16 * KIB, 64 * KIB, 256 * KIB, MIB),
    # The run measures tiny calls while a large call is always in progress.
    (Run("beside", (256 * KIB, MIB), None, 4, 1),),
    settling=100, others=5)
# The size of the largest message in one frame, in bytes. Larger messages are
# announced. The latency run below has one such size, which is not scored: the
# tuner needs it to compare other messages with announced ones.
FRAME = 16352
EAGER = Group(
    "PENSTOCK_EAGER_MAX", (4096, FRAME, 4 * FRAME, 8 * FRAME),
    (Run("latency", (6 * KIB, 14 * KIB, 30 * KIB, 60 * KIB, 120 * KIB,
                     256 * KIB),
         (6 * KIB, 14 * KIB, 30 * KIB, 60 * KIB, 120 * KIB), 30, 1),
     # The run measures tiny calls during a larger call that may be eager.
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
    """Returns {name: environment} for the settings of a group, the adaptive
    setting first."""
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
    """Converts bench/rpc's JSON to {name: microseconds}. Smaller is better."""
    samples = {}
    for cell in cells:
        if cell["bytes"] not in (run.scored or run.sizes):
            continue
        name = f"{run.benchmark} {size_name(cell['bytes'])}"
        if run.benchmark == "beside":
            # Use the 99th percentile of the tiny calls. The calls are
            # sequential, and most tiny calls start while no large call is in
            # progress, so the median would not show the blocking.
            samples[f"{name}, tiny"] = cell["p99_us"]
            samples[f"{name}, a MB"] = 1e6 / cell["mb_per_s"]
        else:
            samples[name] = cell["p50_us"]
    return samples
