# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# libtensor_mpi_openmpi.so.0 and libtensor_mpi_mpich.so.0, each if the compiler wrapper of that MPI is found (Debian's
# libopenmpi-dev, libmpich-dev); prints a line if there is none.

MPICC_openmpi ?= mpicc.openmpi
MPICC_mpich   ?= mpicc.mpich
# "gcc -I... -L... -lmpi"; empty without that MPI. MPIS=openmpi builds for this one alone, MPIS= for none.
mpi_show = $(shell command -v $(MPICC_$(1)) >/dev/null && $(MPICC_$(1)) -show 2>/dev/null)
MPI_SHOW_openmpi := $(call mpi_show,openmpi)
MPI_SHOW_mpich   := $(call mpi_show,mpich)
MPIS  ?= openmpi mpich
MPIS  := $(foreach m,$(MPIS),$(if $(MPI_SHOW_$(m)),$(m)))
MPI_C := $(wildcard lib/group/mpi/*.c)
MPI_SO := $(MPIS:%=$(B)/libtensor_mpi_%.so.$(SOVERSION))

# $(call mpi_cflags,MPI), $(call mpi_libs,MPI). MPICH declares a size of arrays that MPI_STATUSES_IGNORE has not.
mpi_cflags = -Wno-stringop-overflow $(patsubst -I%,-isystem %,$(filter -I%,$(MPI_SHOW_$(1))))
mpi_libs   = $(filter -L% -l%,$(MPI_SHOW_$(1)))

define mpi_rules
MPI_OBJ_$(1) := $$(MPI_C:lib/group/mpi/%.c=$(B)/obj/mpi-$(1)/%.o)

$$(MPI_OBJ_$(1)): $(B)/obj/mpi-$(1)/%.o: lib/group/mpi/%.c | $(GEN)/stamp
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(CPPFLAGS_LIB) $$(LIB_CFLAGS) $$(call mpi_cflags,$(1)) -c -o $$@ $$<

$(B)/libtensor_mpi_$(1).so.$(SOVERSION): $$(MPI_OBJ_$(1)) $(LIB_SO) $(B)/libtensor.so lib/group/mpi/plugin.map
	$$(call say,LD,$$@)
	$$(Q)$$(CC) -shared -Wl,-soname,$$(@F) -Wl,--version-script=lib/group/mpi/plugin.map -Wl,-z,defs -Wl,-z,nodelete \
		-Wl,-rpath,'$$$$ORIGIN' $$(SANITIZE) -o $$@ $$(MPI_OBJ_$(1)) -L$(B) -ltensor $$(call mpi_libs,$(1)) -ldl -pthread

-include $$(MPI_OBJ_$(1):.o=.d)
endef
$(foreach m,$(MPIS),$(eval $(call mpi_rules,$(m))))

ifneq ($(MPIS),)
ALL += $(MPI_SO)
else

.PHONY: no-mpi
no-mpi:
	$(call say,SKIP,libtensor_mpi: neither mpicc.openmpi nor mpicc.mpich was found (libopenmpi-dev, libmpich-dev))
ALL += no-mpi

endif
