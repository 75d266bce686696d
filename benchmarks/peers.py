"""Forests with standard errors: our seconds next to those of other packages.

Run `python -m benchmarks.peers [--quick] [--out DIR]`. Every measurement is a fresh
process that grows a forest and computes standard errors at query points, on two
threads; peers take turns, and the best of three rounds counts. Peers that are not
installed are named and left out (the extra `bench` installs the Python ones).
"""

import argparse
import importlib.util
import json
import os
import platform
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.own_cost import growth_exponents, restricted_speedup, thread_speedup
from benchmarks.python_peers import PYTHON_PEERS, measure_python
from benchmarks.r_peers import R_PEERS, measure_r
from benchmarks.workloads import WORKLOADS
from vstatkit.studies.validity_experiments import has_r_package


def installed() -> tuple[list[str], list[str]]:
    """Peers that can run here, and those that cannot."""
    there, missing = [], []
    for peer, (module, _) in PYTHON_PEERS.items():
        found = importlib.util.find_spec(module) is not None
        (there if found else missing).append(peer)
    for peer in R_PEERS:
        (there if has_r_package(peer) else missing).append(peer)
    return there, missing


def compare(quick: bool) -> dict[str, Any]:
    """Measure every workload and peer, taking turns."""
    there, missing = installed()
    for peer in missing:
        print(f"not installed, left out: {peer}")
    names = ["W1b", "W2b"] if quick else list(WORKLOADS)
    rounds = 1 if quick else 3
    best: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for name in names:
                for peer in there:
                    load = WORKLOADS[name]
                    found = (
                        measure_python(peer, load)
                        if peer in PYTHON_PEERS
                        else measure_r(peer, load, Path(folder))
                    )
                    kept = best[name].setdefault(peer, found)
                    if found["seconds"] < kept["seconds"]:
                        best[name][peer] = found
                    print(f"round {turn + 1} {name} {peer}: {found['seconds']:.3f} s")
    return {"workloads": {n: asdict(WORKLOADS[n]) for n in names}, "best": best}


def as_markdown(report: dict[str, Any]) -> str:
    """Tabulate seconds, ratios to ours and peak memory."""
    lines = [
        f"Machine: {report['machine']}. Two threads each, best of {report['rounds']}.",
        "",
        "| workload | peer | seconds | times ours | peak MB |",
        "|---|---|---|---|---|",
    ]
    for name, peers in report["best"].items():
        ours = peers["vstatkit"]["seconds"]
        for peer, found in peers.items():
            ratio = found["seconds"] / ours
            lines.append(
                f"| {name} | {peer} | {found['seconds']:.3f} | {ratio:.1f} | "
                f"{found['peak_mb']:.0f} |"
            )
    if "exponents" in report:
        shown = ", ".join(f"{n}: {e:.2f}" for n, e in report["exponents"].items())
        lines += ["", f"Exponent of our cost in each size, doubled alone: {shown}."]
        lines += [f"Two threads over one, growing W2: {report['threads']:.2f} x."]
        lines += [
            "Growing only the paths of three query points (W1, all features) over "
            f"whole trees: {report['restricted']:.2f} x, the same values bit by bit."
        ]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Describe the processor."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    """Run the comparison and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two workloads, one round")
    parser.add_argument("--out", type=Path, help="folder for peers.json and peers.md")
    options = parser.parse_args()
    report = compare(options.quick)
    report |= {"machine": machine(), "rounds": 1 if options.quick else 3}
    if not options.quick:
        report |= {
            "exponents": growth_exponents(),
            "threads": thread_speedup(),
            "restricted": restricted_speedup(),
        }
    text = as_markdown(report)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "peers.json").write_text(json.dumps(report, indent=1))
        (options.out / "peers.md").write_text(text)


if __name__ == "__main__":
    main()
