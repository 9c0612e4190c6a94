# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Leaks: with LeakSanitizer in the process, memory that nothing refers to after the tests of a file fails the run."""
import ctypes
import gc


def leak_check():
    """LeakSanitizer's check, None without it."""
    try:
        return ctypes.CDLL(None).__lsan_do_recoverable_leak_check
    except AttributeError:
        return None


def pytest_sessionfinish(session, exitstatus):
    check = leak_check()
    if check is None:
        return
    gc.collect()
    if check():
        print('\nLeakSanitizer: memory is lost, see the report above')
        session.exitstatus = session.exitstatus or 1
