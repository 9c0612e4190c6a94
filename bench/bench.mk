# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Benchmarks: `make bench` measures libtensor and its peers, `make bench-peers` installs the peers
# outside the tree. BENCH="--group tiny --rounds 3" selects rows; see docs/benchmarks.md.

BENCH_SRC := $(wildcard bench/ours/*.c)
BENCH_BIN := $(B)/bench/ours

$(BENCH_BIN): $(BENCH_SRC) bench/ours/row.h $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) -O3 -march=x86-64-v3 -fopenmp -o $@ \
		$(BENCH_SRC) -L$(B) -ltensor -Wl,-rpath,$(abspath $(B)) -lm

# Counts a program's heap, for peaks of training steps.
BENCH_HEAP := $(B)/bench/heap.so

$(BENCH_HEAP): bench/heap.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) -std=gnu11 $(CFLAGS) $(WARN) -fPIC -fno-builtin -shared -o $@ $<

# The module compared with memfd, huge pages and hugetlb, in a guest: KERNEL=6.1 selects the kernel,
# BENCH="--group calls --run count" the rows.
BENCH_MODULE_BIN := $(B)/bench/bench-module
BENCH_MODULE_SRC := $(wildcard bench/module/*.c)

$(BENCH_MODULE_BIN): $(BENCH_MODULE_SRC) bench/module/module.h include/uapi/linux/tensor.h \
		include/uapi/linux/tensor_netlink.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) -Iinclude/uapi -D_GNU_SOURCE -std=gnu11 $(CFLAGS) $(WARN) -o $@ $(BENCH_MODULE_SRC)

.PHONY: bench-module
bench-module: guest-deps $(BENCH_MODULE_BIN)
	$(Q)$(PYTHON) bench/module/run --build $(B) --kernel $(KERNEL) $(BENCH)

# Gradients of samples beside torch.func.
$(B)/bench/per_sample: bench/per_sample.c $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) -o $@ $< -L$(B) -ltensor -Wl,-rpath,$(abspath $(B))

# Latency of channels beside a socket, a pipe and, if PyTorch is there, its queues.
$(B)/bench/channels: bench/channels.c bench/processors.h $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) -o $@ $< -L$(B) -ltensor -Wl,-rpath,$(abspath $(B))

$(B)/bench/throughput: bench/throughput.c bench/processors.h $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) -o $@ $< -L$(B) -ltensor -Wl,-rpath,$(abspath $(B))

# Channels between machines beside a TCP socket.
$(B)/bench/remote: bench/remote.c $(LIB_SO) $(B)/libtensor.so $(UCX_SO)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) -o $@ $< -L$(B) -ltensor -Wl,-rpath,$(abspath $(B))

.PHONY: bench-channels bench-loaders
bench-channels: $(B)/bench/channels $(B)/bench/throughput $(if $(UCX_SO),$(B)/bench/remote)
	$(Q)$<
	$(if $(UCX_SO),$(Q)$(B)/bench/remote)
	$(Q)peer=$$(bench/peers python) && $$peer bench/channels.py || true
	$(Q)$(B)/bench/throughput
	$(Q)peer=$$(bench/peers python) && $$peer bench/channels.py throughput || true

# Batches of images from the workers of a DataLoader beside PyTorch's.
bench-loaders: python
	$(Q)PYTHONPATH=$(abspath $(B))/python $$(bench/peers python || echo $(PYTHON)) bench/loaders.py ours
	$(Q)peer=$$(bench/peers python) && $$peer bench/loaders.py torch || true

# Process groups: plain MPI and our engines in one program for each MPI, beside PyTorch with gloo.
define bench_group_rule
$(B)/bench/group_$(1): bench/group/group.c $(LIB_SO) $(B)/libtensor.so $(B)/libtensor_mpi_$(1).so.$(SOVERSION)
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(CPPFLAGS_ALL) $$(call mpi_cflags,$(1)) -std=gnu11 $$(CFLAGS) $$(WARN) -o $$@ $$< -L$$(B) -ltensor \
		-Wl,-rpath,$$(abspath $$(B)) $$(call mpi_libs,$(1))
endef
$(foreach m,$(MPIS),$(eval $(call bench_group_rule,$(m))))

.PHONY: bench-group
bench-group: $(MPIS:%=$(B)/bench/group_%)
	$(Q)$(PYTHON) bench/group/run $(B) $$(bench/peers python || echo none) $(MPIS)

# A step of data-parallel training on one of up to 1,024 ranks, over functions of MPI that count.
$(B)/bench/group_simulate: bench/group/simulate.c $(LIB_SO) $(B)/libtensor.so $(B)/libtensor_mpi_openmpi.so.$(SOVERSION)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(call mpi_cflags,openmpi) -std=gnu11 $(CFLAGS) $(WARN) -Wno-unused-parameter -rdynamic -o $@ $< \
		-L$(B) -ltensor -Wl,-rpath,$(abspath $(B)) $(call mpi_libs,openmpi)

.PHONY: bench-ranks
bench-ranks: $(if $(filter openmpi,$(MPIS)),$(B)/bench/group_simulate)
	$(Q)$(if $<,$<,echo "bench-ranks: libopenmpi-dev is needed")

# Calls from Python beside NumPy and PyTorch, in one process.
.PHONY: bench-python
bench-python: python
	$(Q)PYTHONPATH=$(abspath $(B))/python $$(bench/peers python || echo $(PYTHON)) bench/python.py $(BENCH)

# The library with a parallel_for() that simulates more threads.
$(B)/bench/scaling: bench/scaling.c $(BENCH_SRC) bench/ours/row.h $(LIB_OBJ)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_LIB) -Ibench -std=gnu11 $(CFLAGS) $(WARN) -O3 -march=x86-64-v3 -fopenmp \
		-Wl,--wrap=parallel_for -o $@ bench/scaling.c $(BENCH_SRC) $(LIB_OBJ) $(LIB_LIBS)

.PHONY: bench-scaling
bench-scaling: $(B)/bench/scaling $(BENCH_BIN)
	$(Q)$(PYTHON) bench/scaling.py $(B) $(BENCH)

# Errors against f64 beside PyTorch's.
.PHONY: bench-errors
bench-errors: python
	$(Q)PYTHONPATH=$(abspath $(B))/python $$(bench/peers python) bench/errors.py $(BENCH)

.PHONY: bench-per-sample
bench-per-sample: $(B)/bench/per_sample
	$(Q)$$(bench/peers python) bench/per_sample.py $<

# Steps of training beside PyTorch: times, and bytes at the peak. VERIFY=1 only compares the losses.
.PHONY: bench-training
bench-training: $(BENCH_BIN) $(BENCH_HEAP)
	$(Q)$(PYTHON) bench/run --build $(B) --group steps $(if $(VERIFY),--verify) $(if $(PROFILE),--profile) $(BENCH)

# Whole models in training and inference, f32 and bf16, beside PyTorch eager and compiled: compiling takes most of the time.
.PHONY: bench-networks
bench-networks: $(BENCH_BIN)
	$(Q)$(PYTHON) bench/run --build $(B) --group networks $(if $(VERIFY),--verify) $(if $(PROFILE),--profile) $(BENCH)

# 200 rows drawn at random: SEED=N draws others.
.PHONY: bench-random
bench-random: $(BENCH_BIN)
	$(Q)echo "bench-random: SEED=$(SEED)"
	$(Q)SEED=$(SEED) $(PYTHON) bench/run --build $(B) --group random $(if $(VERIFY),--verify) $(BENCH)

# Packages for benchmarks; installs only missing ones.
bench-deps:
	@packaging/install-deps build bench

.PHONY: bench bench-deps bench-peers bench-instructions bench-instructions-accept
bench: $(BENCH_BIN) $(BENCH_HEAP)
	$(Q)$(PYTHON) bench/run --build $(B) $(BENCH)
bench-peers: bench-deps
	$(Q)bench/peers install
	$(Q)bench/peers cxx

# Fails when an operator's path grew by more than 5 % since the recorded table.
bench-instructions: bench-deps $(BENCH_BIN)
	$(Q)$(PYTHON) bench/instructions check $(B)
bench-instructions-accept: bench-deps $(BENCH_BIN)
	$(Q)$(PYTHON) bench/instructions accept $(B)

# On a machine with a GPU: the CUDA tests, compute-sanitizer, PyTorch's samples and a table beside that machine's
# PyTorch (PYTHON has it). Copy the table to bench/results/.
$(B)/bench/gpu: bench/gpu/ours.c $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) -o $@ $< -L$(B) -ltensor -Wl,-rpath,$(abspath $(B))

.PHONY: gpu-check gpu-check-run
gpu-check:
	+$(Q)$(MAKE) --no-print-directory CUDA=1 gpu-check-run

gpu-check-run: cuda $(patsubst tests/unit/cuda/%.c,$(B)/tests/%,$(wildcard tests/unit/cuda/test_cuda*.c)) $(B)/bench/gpu
	$(Q)PYTHON=$(PYTHON) bench/gpu/check $(B) $(B)/gpu-check
