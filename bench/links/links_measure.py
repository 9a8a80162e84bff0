"""Measures one link after another, on the machine of the link: the virtual
machine, or, for shm, this machine.

  python3 links_measure.py FOLDER

FOLDER has plan.json. The output is FOLDER/records.json, rewritten after each
link.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

from links_plan import GROUPS, link_named, samples_of, settings_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/verbs"))
# pylint: disable=wrong-import-position
from verbs_bench_guest import (SERVER, route_over_the_cable, run, say,
                               warm_up)

INTERFACES = ("n0", "n1")
TRANSPORTS = {"tcp": "penstock-tcp", "verbs": "verbs", "shm": "shm"}
# Limit a queue, in packets and bytes. The limits are so large that only the
# intended packets are lost.
QUEUED_PACKETS, QUEUED_BYTES = "1000000", "64mb"
# The burst of the rate limit, in bytes: four packets of the cable's MTU. tbf
# splits larger packets.
BURST = "16kb"


def shape(link):
    """Sets the rate, the delay and the loss of both directions of the cable."""
    for interface in INTERFACES:
        subprocess.run(["tc", "qdisc", "del", "dev", interface, "root"],
                       stderr=subprocess.DEVNULL, check=False)
        place = ["root"]
        if link.delay_ms or link.loss:
            words = ["delay", f"{link.delay_ms}ms"]
            if link.loss:
                words += ["loss", f"{link.loss}%"]
            run("tc", "qdisc", "add", "dev", interface, "root", "handle", "1:",
                "netem", *words, "limit", QUEUED_PACKETS)
            place = ["parent", "1:1"]
        if link.rate:
            # The unit "mbps" of tc is megabytes per second.
            run("tc", "qdisc", "add", "dev", interface, *place, "handle", "10:",
                "tbf", "rate", f"{link.rate}mbps", "burst", BURST, "limit",
                QUEUED_BYTES)
        # Turns off segmentation offload on a link with losses, so that packets
        # are lost one by one and not sixteen together.
        run("ip", "link", "set", "dev", interface, "gso_max_segs",
            "1" if link.loss else "65535")


def measure_run(plan, fabric, part, environment, warm_ups):
    """Runs bench/rpc, and returns its JSON, or an empty list if it fails."""
    out = pathlib.Path("/dev/shm", f"links-{os.getpid()}.json")
    words = [plan["program"], f"--transports={TRANSPORTS[fabric]}",
             f"--benchmark={part.benchmark}", "--api=async", "--rounds=1",
             f"--sizes={','.join(map(str, part.sizes))}",
             f"--rpcs={part.rpcs * plan['scale']}", f"--window={part.window}",
             f"--warm-up={warm_ups}", f"--json={out}"]
    if fabric != "shm":
        words.append(f"--address={SERVER}")
    if fabric == "verbs":
        words += ["--client-device=rxe0", "--server-device=rxe1"]
    try:
        run(*words, env={**os.environ, **environment})
        return json.loads(out.read_text())
    except subprocess.CalledProcessError:
        say("    FAILED:", environment, *words[1:])  # rpc has printed the error
        return []


def measure_setting(plan, fabric, group, environment):
    warm_ups = group.others if environment else group.settling
    samples, sizes = {}, []
    field = ("eager_max_bytes" if "EAGER" in group.variable else "chunk_bytes")
    for part in group.runs:
        cells = measure_run(plan, fabric, part, environment, warm_ups)
        samples.update(samples_of(part, cells))
        sizes += [int(cell[field]) for cell in cells]
    return samples, sizes


def measure(plan, out):
    records = []
    start = time.monotonic()
    for fabric, group_name, link in plan["runs"]:
        group = GROUPS[group_name]
        if fabric != "shm":
            shape(link_named(link))
        for setting, environment in settings_of(group).items():
            samples, sizes = measure_setting(plan, fabric, group, environment)
            records.append({"fabric": fabric, "group": group_name,
                            "link": link, "setting": setting,
                            "samples": samples,
                            "sizes": [min(sizes), max(sizes)] if sizes else []})
            say(f"  {time.monotonic() - start:7.1f} s: {fabric}, {group_name}, "
                f"{link}, {setting}: {sizes} "
                f"{ {key: round(value) for key, value in samples.items()} }")
        out.write_text(json.dumps(records))


def main():
    work = pathlib.Path(sys.argv[1])
    plan = json.loads((work / "plan.json").read_text())
    os.environ.update(PENSTOCK_LOG="warning")
    if plan["in_vm"]:
        os.environ.update(PENSTOCK_POLLING="event")
        route_over_the_cable()
        plan["programs"] = {"rpc": plan["program"]}
        warm_up(plan)
        plan["program"] = plan["programs"]["rpc"]
    measure(plan, work / "records.json")


if __name__ == "__main__":
    main()
