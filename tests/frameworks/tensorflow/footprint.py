"""Reads the resources of a process from /proc, to check that they do not
grow."""

import os


def footprint(pid="self"):
    """Returns a process's threads, descriptors, mappings and memory in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    with open(f"/proc/{pid}/maps", encoding="utf-8") as lines:
        maps = lines.read().splitlines()
    return {
        "threads": int(fields["Threads"]),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "mappings": len(maps),
        # Selects mappings of memfds, whose names look like files of /dev/shm
        # in /proc/PID/maps.
        "shared_mappings": sum(
            "/memfd:" in line or "/dev/shm/" in line for line in maps),
        "own_kib": int(fields["RssAnon"].split()[0]),
        "shared_kib": int(fields["RssShmem"].split()[0]),
    }


def growth(before, after):
    """Returns, for each figure, the growth of the largest value between two
    groups of samples."""
    return {
        name: max(each[name] for each in after)
        - max(each[name] for each in before)
        for name in before[0]
    }
