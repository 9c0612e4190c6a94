# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Leaks: with LeakSanitizer in the process, lost memory that the extension or the library allocated fails the run of a
file.

LeakSanitizer does not see the memory in which Python keeps the frames of running functions, and reports the objects
that only they refer to: a leak counts if a function of ours is among its callers.
"""
import ctypes
import gc
import os
import re
import tempfile

OURS = re.compile(r'python/src/|python/operators\.c|_C\.abi3\.so|libtensor\.so')


def leak_report(check):
    """The text that LeakSanitizer writes to the standard error output."""
    with tempfile.TemporaryFile() as report:
        saved = os.dup(2)
        os.dup2(report.fileno(), 2)
        try:
            check()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        report.seek(0)
        return report.read().decode(errors='replace')


def pytest_sessionfinish(session, exitstatus):
    try:
        check = ctypes.CDLL(None).__lsan_do_recoverable_leak_check
    except AttributeError:  # no sanitizer
        return
    gc.collect()
    leaks = [part for part in re.split(r'\n(?=(?:Direct|Indirect) leak of )', leak_report(check)) if OURS.search(part)]
    if leaks:
        print('\nLeakSanitizer: lost memory\n' + '\n'.join(leaks))
        session.exitstatus = session.exitstatus or 1
