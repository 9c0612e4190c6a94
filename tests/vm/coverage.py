#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Reports the lines and branches of the module that the tests in the guest executed.

    tests/vm/coverage.py OBJECTS OUT DATA... [--least PERCENT]

OBJECTS is the build folder of the module, built with GCOV_PROFILE; each DATA is a copy of
/sys/kernel/debug/gcov of a guest. Prints a table and writes it to OUT/kmod.txt; writes the lines that
were not executed to OUT/missed.txt. Fails if fewer than PERCENT of the lines were executed.
"""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

GCOV = "gcov-12"    # must match the compiler of the kernel


def reports(objects, data):
    """The JSON report of gcov for each object that has data."""
    for base, _, names in os.walk(data):
        for name in names:
            if not name.endswith(".gcda"):
                continue
            path = os.path.join(base, name)
            inner = path[path.rindex("/kmod/"):].lstrip("/")
            notes = os.path.join(objects, inner[:-4] + "gcno")
            if not os.path.exists(notes):
                continue
            with tempfile.TemporaryDirectory() as work:
                shutil.copy(path, work)
                shutil.copy(notes, work)
                done = subprocess.run([GCOV, "--json-format", "--stdout", "--branch-probabilities", name],
                                      cwd=work, stdout=subprocess.PIPE, check=True)
            yield json.loads(done.stdout)


def collect(objects, folders):
    """The sum of all reports: {file: {line: [count, [count of each branch]]}}."""
    files = collections.defaultdict(dict)
    for data in folders:
        for report in reports(objects, data):
            for source in report["files"]:
                at = source["file"].rfind("/kmod/")
                if at < 0 and not source["file"].startswith("kmod/"):
                    continue
                lines = files[source["file"][at + 1:]]
                for line in source["lines"]:
                    seen = lines.setdefault(line["line_number"], [0, []])
                    seen[0] += line["count"]
                    taken = [branch["count"] for branch in line["branches"]]
                    if len(taken) == len(seen[1]):
                        seen[1] = [a + b for a, b in zip(taken, seen[1])]
                    else:
                        seen[1] = max(taken, seen[1], key=len)
    return files


def share(part, whole):
    return f"{100 * part / whole:6.1f} %" if whole else "       -"


def table(files):
    rows, sums = [], [0, 0, 0, 0]
    for name in sorted(files):
        counts = files[name].values()
        branches = [taken for count, all_taken in counts for taken in all_taken]
        row = [sum(1 for count, _ in counts if count), len(counts),
               sum(1 for taken in branches if taken), len(branches)]
        sums = [a + b for a, b in zip(sums, row)]
        rows.append((name, row))
    rows.append(("all", sums))
    lines = [f"{'file':<28} {'lines':>11} {'':>8} {'branches':>11}"]
    for name, (run, lines_nr, taken, branches_nr) in rows:
        lines.append(f"{name:<28} {run:>5}/{lines_nr:<5} {share(run, lines_nr)} {taken:>5}/{branches_nr:<5} "
                     f"{share(taken, branches_nr)}")
    return "\n".join(lines) + "\n", 100 * sums[0] / max(sums[1], 1)


def missed(files):
    for name in sorted(files):
        with open(name) as f:
            text = f.read().splitlines()
        for number in sorted(files[name]):
            if not files[name][number][0]:
                yield f"{name}:{number}: {text[number - 1].strip()}\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("objects")
    p.add_argument("out")
    p.add_argument("data", nargs="+")
    p.add_argument("--least", type=float, default=0)
    args = p.parse_args()
    files = collect(args.objects, args.data)
    if not files:
        raise SystemExit("tests/vm/coverage.py: no data: was the module built with GCOV_PROFILE?")
    os.makedirs(args.out, exist_ok=True)
    text, percent = table(files)
    with open(f"{args.out}/kmod.txt", "w") as f:
        f.write(text)
    with open(f"{args.out}/missed.txt", "w") as f:
        f.writelines(missed(files))
    print(text, end="")
    print(f"  {'ok' if percent >= args.least else 'not ok'} 1 coverage.enough_lines_ran # {percent:.1f} % of the lines ran, "
          f"{args.least:.0f} % are required")
    return 0 if percent >= args.least else 1


if __name__ == "__main__":
    sys.exit(main())
