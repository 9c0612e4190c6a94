# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The test suite of the Python array API standard: make test-array-api [ARRAY_API_TESTS=FOLDER] [ARGS="-k linalg"].
# FOLDER is a clone of data-apis/array-api-tests with its submodule; without it the suite is cloned.

.PHONY: test-array-api
test-array-api: $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(B)/conformance
	$(Q)FIGURES=$(if $(ARGS),,$(abspath $(B)/conformance/array_api.json)) tests/array_api/run $(LIB_SO) "$(ARRAY_API_TESTS)" $(ARGS)
