# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Tests of the Python package: every tests/python/test_*.py runs in a process of its own (tests/run-python).

PY_TESTS := $(wildcard tests/python/test_*.py)

.PHONY: test-python test-python-debug test-python-sanitize torture-python test-wheel test-sdist
test-python: python-deps
	+$(Q)$(MAKE) --no-print-directory python
	$(Q)PYTHONPATH=$(abspath $(B))/python tests/run-python $(B) python $(call chosen,$(PY_TESTS))

# The debug build of Python checks references, memory and the state of the interpreter in assertions.
test-python-debug: python-deps
	@packaging/install-deps python-debug
	+$(Q)$(MAKE) --no-print-directory PY_NAME=python-debug PY_DEFINES=-DPy_DEBUG python
	$(Q)PYTHONPATH=$(abspath $(B))/python-debug PYTHON_RUN="env PYTHONMALLOC=debug /usr/bin/python3-dbg -X dev" \
		tests/run-python $(B) python-debug $(call chosen,$(PY_TESTS))

# LeakSanitizer runs while the interpreter still owns its objects (tests/python/conftest.py); at exit it would report
# Python's. Python's own allocator hides the ends of objects. Allocations that fail return NULL, as without sanitizers.
PY_ASAN_RUN = env LD_PRELOAD=$(shell $(CC) -print-file-name=libasan.so):$(shell $(CC) -print-file-name=libubsan.so) \
	PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=1:leak_check_at_exit=0:intercept_tls_get_addr=0:allocator_may_return_null=1:max_allocation_size_mb=4096 \
	/usr/bin/python3

test-python-sanitize: python-deps
	+$(Q)packaging/build-steps make B=build/asan LEVELS="$(SANITIZE_LEVELS)" $(SANITIZED) python
	$(Q)PYTHONPATH=$(abspath build/asan)/python PYTHON_RUN='$(PY_ASAN_RUN)' tests/run-python build python-sanitize \
		$(call chosen,$(PY_TESTS))

# As the fuzzer, the soak of threads and the calls of autograd of test-python, for longer, and with a random seed by default.
ROUNDS ?= 200
CALLS  ?= 1000000
SOAK   ?= 300
torture-python: python-deps
	+$(Q)$(MAKE) --no-print-directory python
	$(Q)PYTHONPATH=$(abspath $(B))/python $(PYTHON) -B tests/fuzz/python/main.py --rounds $(ROUNDS) \
		--seed $(if $(filter file,$(origin SEED)),random,$(SEED))
	$(Q)PYTHONPATH=$(abspath $(B))/python SOAK_SECONDS=$(SOAK) GROWTH_CALLS=$(CALLS) \
		$(PYTHON) -B -X faulthandler -m pytest -q -p no:cacheprovider tests/python/test_concurrent.py tests/python/test_growth.py

SUITES ?= bookworm trixie
test-wheel:
	@packaging/install-deps wheel
	@tests/vm/tally wheel tests/packaging/test-wheel $(SUITES)

# T=test_tensor runs one file of tests/python with it, instead of all.
test-sdist: all
	@packaging/install-deps build wheel python-test
	@tests/vm/tally sdist tests/packaging/test-sdist $(if $(T),$(call chosen,$(PY_TESTS)))
