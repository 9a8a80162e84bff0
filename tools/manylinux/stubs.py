#!/usr/bin/python3 -B
"""Makes libraries to link with in glibc's place, so that the result runs with an
older glibc.

    stubs.py RELEASE FOLDER

RELEASE is that of the older glibc, such as 2.28. The libraries in FOLDER have
the names and versions that this machine's glibc has from RELEASE or before, and
no code. The linker takes a function's version from them. At run time the real
glibc is loaded. A function that is younger than RELEASE stays undefined.

glibc 2.34 moved libpthread, libdl and librt into libc. Functions that moved are
in the stubs of their old libraries, so that the result loads these.
"""

import collections
import pathlib
import re
import subprocess
import sys

# By the names of the linker: names of files.
_FILES = {"c": "libc.so.6", "m": "libm.so.6", "pthread": "libpthread.so.0",
          "dl": "libdl.so.2", "rt": "librt.so.1"}
# The functions that moved into libc, by the beginnings of their names.
_MOVED = {"pthread_": "pthread", "sem_": "pthread", "dl": "dl", "shm_": "rt",
          "timer_": "rt"}
# A line of objdump: address, flags, section, size, version, name.
_LINE = re.compile(r"^[0-9a-f]+ (?P<flags>.{7}) (?P<section>\S+)\s+"
                   r"(?P<size>[0-9a-f]+)\s+\(?GLIBC_(?P<version>[0-9.]+)\)?"
                   r"\s+(?P<name>\S+)$")
_MERGER = (2, 34)
# Functions that libc_nonshared.a has. The pthread_atfork() there registers
# functions for one library, and dlclose() of that library removes them.
_NOT_SHARED = {"pthread_atfork"}

Symbol = collections.namedtuple("Symbol", ("name", "version", "is_data",
                                           "size"))


def numbers(version):
    return tuple(map(int, version.split(".")))


def path_of(file):
    return subprocess.run(["gcc", f"-print-file-name={file}"], text=True,
                          capture_output=True, check=True).stdout.strip()


def symbols_of(library):
    """Returns lists of all versions of each symbol of a library, by name."""
    text = subprocess.run(["objdump", "-T", path_of(library)], text=True,
                          capture_output=True, check=True).stdout
    symbols = collections.defaultdict(list)
    for found in map(_LINE.match, text.splitlines()):
        if found and found["section"] not in ("*UND*", "*ABS*"):
            symbols[found["name"]].append(Symbol(
                found["name"], found["version"], "O" in found["flags"],
                int(found["size"], 16)))
    return symbols


def library_of(name, own, versions):
    """Returns the library that had a symbol of `own` before 2.34, or None if
    that is not known."""
    if own != "c" or all(numbers(one.version) != _MERGER for one in versions):
        return own
    return next((library for prefix, library in _MOVED.items()
                 if name.startswith(prefix)), None)


def old_symbols(release):
    """Returns lists of symbols by library."""
    chosen = collections.defaultdict(list)
    for own in ("c", "m"):
        for name, versions in symbols_of(_FILES[own]).items():
            old = [one for one in versions
                   if numbers(one.version) <= numbers(release)]
            library = library_of(name, own, versions)
            if old and library is not None and name not in _NOT_SHARED:
                chosen[library].append(
                    max(old, key=lambda one: numbers(one.version)))
    return chosen


def make(library, symbols, folder):
    """Makes the stub of a library."""
    source, script = folder / f"{library}.s", folder / f"{library}.map"
    lines = []
    for index, one in enumerate(symbols):
        kind = "object" if one.is_data else "function"
        lines += [f".globl s{index}", f".type s{index}, @{kind}",
                  f".size s{index}, {one.size or 1}", f"s{index}: .byte 0",
                  f".symver s{index}, {one.name}@@GLIBC_{one.version}"]
    source.write_text("\n".join(lines) + "\n")
    versions = sorted({one.version for one in symbols}, key=numbers)
    script.write_text("".join(f"GLIBC_{one} {{}};\n" for one in versions))
    subprocess.run(["gcc", "-shared", "-nostdlib",
                    f"-Wl,-soname,{_FILES[library]}",
                    f"-Wl,--version-script={script}",
                    "-o", folder / _FILES[library], source], check=True)


def main(release, folder):
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for library, symbols in old_symbols(release).items():
        make(library, symbols, folder)
        files = [folder / _FILES[library]]
        if library == "c":  # a part that is never shared, and the loader
            files += map(path_of, ("libc_nonshared.a", "ld-linux-x86-64.so.2"))
        (folder / f"lib{library}.so").write_text(
            f"GROUP ( {' '.join(map(str, files))} )\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
