"""Reads costs of functions from callgrind and perf; for tools/profile.

A function is (its name, the file name of its program or library).
"""

import collections
import os
import re

# The layers of penstock's names. Inlined code counts for the function around
# it.
LAYERS = (
    ("the benchmark", r"penstock::bench"),
    ("Penstock, transport/grpc", r"penstock::core"),
    ("Penstock, below gRPC", r"penstock::"),
)
LIBRARIES = (
    ("libgrpc++", "gRPC's C++ API"), ("libgrpc", "gRPC"), ("libgpr", "gRPC"),
    ("libupb", "gRPC"), ("libabsl", "abseil"), ("libpthread", "libc"),
    ("libc.so", "libc"), ("libc-", "libc"), ("libm.so", "libc"),
    ("vdso", "libc"), ("ld-linux", "libc"), ("libstdc++", "libstdc++"),
)
# The suffixes of cloned functions in C++, which count as one function.
CLONE = re.compile(r" \[clone [^\]]*\]|'\d+$")


class Profile:
    """The costs of functions: each function's own, and those of its calls.

    own: {function: cost in itself}
    calls: {(caller, function): [calls, cost with all callees]}
    """

    def __init__(self):
        self.own = collections.Counter()
        self.calls = collections.defaultdict(lambda: [0, 0])

    def total(self):
        return sum(self.own.values())

    def add(self, other, sign=1):
        for function, cost in other.own.items():
            self.own[function] += sign * cost
        for pair, (count, cost) in other.calls.items():
            self.calls[pair][0] += sign * count
            self.calls[pair][1] += sign * cost

    def over(self, divisor):
        """Returns every figure divided by `divisor`."""
        part = Profile()
        for function, cost in self.own.items():
            part.own[function] = cost / divisor
        for pair, (count, cost) in self.calls.items():
            part.calls[pair] = [count / divisor, cost / divisor]
        return part

    def with_callees(self, function):
        """Returns (calls, cost with all callees) of a function; callgrind only.

        A function that calls itself counts once for each level.
        """
        calls = [entry for (_, called), entry in self.calls.items()
                 if called == function]
        return (sum(count for count, _ in calls),
                sum(cost for _, cost in calls))

    def by_layer(self):
        layers = collections.Counter()
        for function, cost in self.own.items():
            layers[layer_of(function)] += cost
        return layers


def layer_of(function):
    name, library = function
    for layer, pattern in LAYERS:
        if re.search(pattern, name):
            return layer
    for part, layer in LIBRARIES:
        if part in library:
            return layer
    return "others (templates of gRPC and C++)"


class _Names:
    """Translates numbers to names: callgrind writes "(3) name" once, and then
    "(3)"."""

    def __init__(self):
        self.known = {}

    def read(self, text):
        match = re.match(r"\((\d+)\)(?: (.*))?$", text)
        if not match:
            return text
        if match[2] is not None:
            self.known[match[1]] = match[2]
        return self.known[match[1]]


def read_callgrind(lines):
    """Returns (command line, Profile) of one process, from its callgrind.out.

    The format is in valgrind's manual, "Callgrind Format Specification".
    """
    profile, command = Profile(), ""
    objects, functions = _Names(), _Names()
    library = called_library = function = called = None
    calls = 0  # if not 0, the next line has the cost of these calls
    for line in lines:
        line = line.rstrip("\n")
        key, is_name, value = line.partition("=")
        if line.startswith("cmd:"):
            command = line[len("cmd:"):].strip()
        elif not is_name:
            fields = line.split()
            # Reads "LINE COST"; the line's number is often relative. A line
            # without a cost was not counted.
            if len(fields) < 2 or not re.match(r"[-+*\d]", fields[0]):
                continue
            if calls:
                entry = profile.calls[function, called]
                entry[0] += calls
                entry[1] += int(fields[1])
                calls = 0
            else:
                profile.own[function] += int(fields[1])
        elif key == "ob":
            library = os.path.basename(objects.read(value))
        elif key == "cob":
            called_library = os.path.basename(objects.read(value))
        elif key == "fn":
            function = (CLONE.sub("", functions.read(value)), library)
        elif key == "cfn":
            # Takes the same object if "cob" is missing: the called function is
            # then in the caller's object.
            called = (CLONE.sub("", functions.read(value)),
                      called_library or library)
            called_library = None
        elif key == "calls":
            calls = int(value.split()[0])
    return command, profile


def read_perf(text, period):
    """Returns a Profile of perf report's lines "SAMPLES, object, symbol".

    A sample stands for `period` events.
    """
    profile = Profile()
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 3 or not fields[0].isdigit():
            continue
        symbol = re.sub(r"^\[[.k]\] ", "", fields[2])
        profile.own[(CLONE.sub("", symbol), fields[1])] += (
            int(fields[0]) * period)
    return profile
