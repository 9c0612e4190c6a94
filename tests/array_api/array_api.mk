# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The test suite of the Python array API standard: make test-array-api [STANDARD_EXAMPLES=1000] [ARRAY_API_TESTS=FOLDER] [ARGS="-k linalg"].
# FOLDER is a clone of data-apis/array-api-tests with its submodule; without it the suite is cloned. STANDARD_EXAMPLES: Hypothesis's
# number for each test; 1,000 take 12 minutes.

STANDARD_EXAMPLES ?= 100
.PHONY: test-array-api
test-array-api:
	+$(Q)$(MAKE) --no-print-directory python
	@mkdir -p $(B)/conformance
	$(Q)EXAMPLES=$(STANDARD_EXAMPLES) FIGURES=$(if $(ARGS),,$(abspath $(B)/conformance/array_api.json)) \
		tests/array_api/run $(abspath $(B))/python "$(ARRAY_API_TESTS)" $(ARGS)
