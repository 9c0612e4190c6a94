# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The machine and the software with which a table was measured."""
import datetime
import os
import platform
import re
import subprocess

# Flags by which the kernels of either side are selected.
FLAGS = re.compile(r"^(sse4_2|avx.*|fma|f16c|amx.*|bmi2|vaes|gfni|erms|fsrm)$")


def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def read(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return ""


def machine(peers):
    cpu = dict(re.findall(r"^(model name|flags|cpu family|model)\s*: (.*)$",
                          read("/proc/cpuinfo"), re.M))
    commit = said("git", "rev-parse", "--short=12", "HEAD")
    if said("git", "status", "--porcelain", "--untracked-files=no"):
        commit += " and changes"
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit,
        "cpu": cpu.get("model name", "?"),
        "family_model": f"{cpu.get('cpu family', '?')}/{cpu.get('model', '?')}",
        "cpus": os.cpu_count(),
        "flags": " ".join(f for f in cpu.get("flags", "").split() if FLAGS.match(f)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "kernel": platform.release(),
        "huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "huge_pages_shared": read("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        "load": [round(x, 2) for x in os.getloadavg()],
        "compiler": said("gcc", "--version").split("\n")[0],
        "peers": peers,
    }


def text(m):
    return "\n".join([
        f"- {m['date']}, commit {m['commit']}",
        f"- {m['cpu']} (family/model {m['family_model']}), {m['cpus']} CPUs,"
        f" {m['memory_gib']} GiB, Linux {m['kernel']}",
        f"- CPU flags: {m['flags']}",
        f"- huge pages: {m['huge_pages']}; of shared memory: {m['huge_pages_shared']}",
        f"- {m['compiler']}; peers: {m['peers'] or 'missing (make bench-peers)'}",
        f"- load average at the start: {' '.join(map(str, m['load']))}",
    ])
