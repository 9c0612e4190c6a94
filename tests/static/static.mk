# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make check-kmod      tools over the module and its headers: checkpatch, kernel-doc, sparse, smatch, W=1,
#                        the kernel's semantic patches, the layout of the ABI
#   make test-abi        the layout of the kernel ABI alone, for 64-bit and for 32-bit programs: seconds
#   make check-layers    files of the library and of the module use only lower layers: seconds
#   make check-cuda      docs/cuda.md names the kernels that CUDA has not: less than a second
#   make check-cuda-code registers, local memory and 128-bit loads of the kernels that nvcc makes: ten minutes
#   make accept-cuda-code    record them
#   make accept-abi      record additions to the kernel ABI
#   make check-abi       the ABI of the library: exported functions and public types: seconds
#   make accept-library-abi [BREAKING=1]    record additions; BREAKING=1: changes and removals, too
#   make format          clang-format over all sources
#   make check-format    fails on a source that `make format` would change: seconds
#   make lint            codespell, cppcheck and clang-tidy: minutes
#   make test-lint       codespell and cppcheck: less than a minute
#   make compile_commands.json    the compilation database for clangd and clang-tidy, in build/
.PHONY: check-kmod test-abi check-layers check-cuda check-cuda-code accept-cuda-code accept-abi format check-format check-abi accept-library-abi lint test-lint \
	compile_commands.json
check-kmod:
	@packaging/install-deps guest kmod check
	@tests/vm/tally check-kmod tests/static/check-kmod

test-abi:
	@packaging/install-deps test
	@tests/vm/tally abi tests/static/uapi-layout

check-layers: $(LIB_SO)
	@tests/vm/tally layers tests/static/check-layers $(B)

check-cuda:
	@tests/vm/tally cuda-kernels tests/static/check-cuda

check-cuda-code:
	+$(Q)$(MAKE) --no-print-directory B=$(B)/cuda-code CUDA=sm_90a cuda-kernels
	$(Q)tools=$$(packaging/cuda-tools) && NVCC="$(NVCC_FOUND)" tests/vm/tally cuda-code tests/static/check-cuda-code $(B)/cuda-code "$$tools"

accept-cuda-code:
	+$(Q)$(MAKE) --no-print-directory B=$(B)/cuda-code CUDA=sm_90a cuda-kernels
	$(Q)tools=$$(packaging/cuda-tools) && NVCC="$(NVCC_FOUND)" tests/static/check-cuda-code $(B)/cuda-code "$$tools" --accept

accept-abi:
	tests/static/uapi-layout --accept

check-abi: $(LIB_SO)
	@packaging/install-deps lint
	@tests/vm/tally library-abi tests/static/library-abi $(LIB_SO)

accept-library-abi: $(LIB_SO)
	@packaging/install-deps lint
	@tests/static/library-abi $(LIB_SO) --accept $(if $(BREAKING),--breaking)

format:
	@packaging/install-deps format
	@tests/static/format

check-format:
	@packaging/install-deps format
	@tests/vm/tally format tests/static/format --check

# One instruction-set level: the others compile the same sources.
compile_commands.json: $(GEN)/stamp
	@tests/static/compile-commands $(B)/compile_commands.json LEVELS=$(HOST_LEVEL) B=$(B) CC="$(CC)"

lint: compile_commands.json
	@packaging/install-deps lint
	@tests/vm/tally lint-all tests/static/lint $(B)

test-lint: $(GEN)/stamp
	@packaging/install-deps lint
	@tests/vm/tally lint tests/static/lint $(B) spelling_is_correct cppcheck_is_clean python_is_clean
