#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# .github/workflows/ci.yml names only existing make targets, files and groups of packages, and runs all steps
# of `make test` except those that start a guest.
exec /usr/bin/python3 - <<'PYTHON'
import glob
import os
import re
import sys
import yaml

workflow = yaml.safe_load(open(".github/workflows/ci.yml"))
rows = [line.rstrip("\n").split("\t") for line in open("packaging/targets.txt") if not line.startswith("#")]
targets = {r[1] for r in rows}
groups = {line.split("\t")[0] for line in open("packaging/packages.txt") if "\t" in line}


def steps():
    for job in workflow["jobs"].values():
        values = [str(v) for vs in job.get("strategy", {}).get("matrix", {}).values() for v in vs]
        for step in job["steps"]:
            yield step, values


def make_words():
    """Words of make commands that are neither options nor variables."""
    for step, values in steps():
        for line in step.get("run", "").splitlines():
            if re.match(r"\s*make\b", line):
                line = re.sub(r'\w+=("[^"]*"|\S+)', "", line)
                if "${{ matrix.target }}" in line:
                    yield from values
                line = re.sub(r"\$\{\{.*?\}\}", "", line)
                yield from (w for w in line.split()[1:] if not w.startswith("-") and not w.startswith("build/"))


def ci_names_existing_targets():
    return [f"no target {w}" for w in make_words() if w not in targets]


def ci_names_existing_groups():
    named = [g for step, _ in steps() for g in step.get("with", {}).get("groups", "").split()]
    return [f"no group {g}" for g in named if g not in groups] + ([] if named else ["no groups"])


def local_actions_exist():
    used = [s["uses"] for s, _ in steps() if s.get("uses", "").startswith("./")]
    return [f"no {u}" for u in used if not os.path.exists(u + "/action.yml")] + ([] if used else ["no actions"])


def only_guests_are_left_out():
    text = open("tests/tests.mk").read()
    recipe = re.search(r"^test:\n((?:\t.*\n)+)", text, re.M).group(1)
    want = {t for t in re.findall(r"([a-z-]+)=[a-z0-9.-]+", recipe) if "guest" not in t and t in targets}
    # `make lint` includes it.
    want -= {"test-lint"}
    return [f"{t} is in no job" for t in sorted(want - set(make_words()))] + ([] if len(want) > 5 else ["few steps found"])


def issue_forms_are_complete():
    faults = []
    for path in glob.glob(".github/ISSUE_TEMPLATE/*.yml"):
        form = yaml.safe_load(open(path))
        if path.endswith("config.yml"):
            continue
        if not {"name", "description", "body"} <= set(form):
            faults.append(f"{path}: name, description and body are needed")
        ids = [f["id"] for f in form["body"] if f["type"] != "markdown"]
        if len(ids) != len(set(ids)):
            faults.append(f"{path}: two fields have one id")
    return faults


checks = [ci_names_existing_targets, ci_names_existing_groups, local_actions_exist, only_guests_are_left_out,
          issue_forms_are_complete]
print(f"1..{len(checks)}")
failed = 0
for n, check in enumerate(checks, 1):
    faults = check()
    print(f"{'not ok' if faults else 'ok'} {n} - {check.__name__}")
    for fault in faults:
        print(f"# {fault}")
    failed = failed or bool(faults)
sys.exit(int(failed))
PYTHON
