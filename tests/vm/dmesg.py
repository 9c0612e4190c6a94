# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Finds errors and warnings in a kernel log."""
import re

# The guest's init writes this line; messages of the boot before it are ignored.
START = "devtensor-guest: start"

BAD = re.compile(
    r"WARNING: |BUG: |BUG |\bOops\b|KASAN|UBSAN|Call Trace|general protection|kernel panic"
    r"|possible (recursive|circular|irq lock) |lock(dep| order| held| nesting)|bad unlock balance"
    r"|suspicious RCU|Invalid wait context|sleeping function|scheduling while atomic"
    r"|unreferenced object|new suspected memory leaks|refcount_t:|use-after-free|ODEBUG"
    r"|Bad page|bad page|list_(add|del) corruption|INFO: task|detected stall|soft lockup"
    r"|unable to handle|DEBUG_LOCKS|VM_BUG|page dumped because|\bleaked\b|Objects remaining"
    r"|still has .* (objects|references)|workqueue lockup|Out of memory|Busy inodes"
    r"|enqueued on deprecated", re.I)

# Messages that match BAD and are not errors.
BENIGN = re.compile(r"Unprivileged eBPF is enabled|Lock dependency validator"
                    r"|Kernel memory leak detector initialized")

# A data race counts if the module is in one of the two stacks; others are the kernel's own.
RACE, RACE_END, OURS = "BUG: KCSAN:", "=" * 40, "[tensor]"

# The node of a page is constant but shares a word with bits that change. The core reads the word without
# READ_ONCE() while another processor changes such a bit, which is correct if that change is atomic.
NODE_OF_PAGE = re.compile(r"data-race in (.* / )?page_to_nid( / |$)")
PLAIN_WRITE = re.compile(r"\bwrite (\(reordered\) )?to ")


def is_ours(report):
    """Whether a KCSAN report, given as lines, shows a race in which the module takes part."""
    sound = NODE_OF_PAGE.search(report[0]) and not any(PLAIN_WRITE.search(line) for line in report)
    return not sound and any(OURS in line for line in report)


def without_foreign_races(lines):
    """The lines of a log without the KCSAN reports in which the module does not appear."""
    kept, report = [], None
    for line in lines:
        if RACE in line:
            report = []
        if report is None:
            kept.append(line)
            continue
        report.append(line)
        if RACE_END in line:
            kept += report if is_ours(report) else []
            report = None
    return kept + (report or [])


def problems(text, allow):
    """Pairs of (the last test announced in the log, the bad line), in order of appearance."""
    found, last = [], ""
    started = START not in text
    for line in without_foreign_races(text.splitlines()):
        if START in line:
            started = True
        announced = re.search(r"devtensor-guest: run (.*)", line)
        if announced:
            last = announced.group(1)
        elif (started and BAD.search(line) and not BENIGN.search(line)
              and not any(re.search(pattern, line) for pattern in allow)):
            found.append((last, line))
    return found
