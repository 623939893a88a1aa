# SPDX-License-Identifier: BSD-3-Clause
# make lint: layers, circles, sizes, formatting, cppcheck, shellcheck, clang-tidy
# (some minutes on two cores, then only what has changed). LINT_FILES="FILE..." has
# the slow ones, cppcheck and clang-tidy, look at these alone. make format: mend
# the formatting in place.
LINT_FILES =
LINT = $(srcdir)/tools/lint $(srcdir)
LINT_CHECKS = layers circles budgets format cppcheck shell tidy
LINT_FLAGS = $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) \
	$(HDF5_CFLAGS) $(MPI_CFLAGS) $(UCX_CFLAGS) $(PMIX_CFLAGS) \
	$(YAML_CFLAGS) $(JANSSON_CFLAGS) $(XXHASH_CFLAGS) $(ONEDNN_CFLAGS) \
	$(HWLOC_CFLAGS) $(CUDA_CFLAGS) -DPKGLIBDIR='"$(pkglibdir)"' \
	-DPKGDATADIR='"$(pkgdatadir)"'
if CUDA_HEADERS
LINT_CUDA = yes
endif
EXTRA_DIST += tools/sample-words tools/check-budgets tools/check-circles tools/check-layers \
	tools/lint \
	.clang-format .clang-tidy

.PHONY: lint format $(LINT_CHECKS:%=lint-%)
lint: $(LINT_CHECKS:%=lint-%)
$(LINT_CHECKS:%=lint-%): $(BUILT_SOURCES)
	@echo "  LINT     $(@:lint-%=%)"; LINT_FILES="$(LINT_FILES)" LINT_CUDA=$(LINT_CUDA) $(LINT) $(@:lint-%=%) $(LINT_FLAGS)
# Who calls whom is read from the objects.
lint-circles: all
format:
	$(LINT) reformat
clean-local: lint-clean
.PHONY: lint-clean
lint-clean:
	rm -rf lint-passed

# make metrics: sizes and shape of the code; BESIDE="TREE[:BUILD]..." puts other
# versions beside it.
BESIDE =
.PHONY: metrics
metrics:
	$(srcdir)/tools/metrics $(BESIDE) $(srcdir):.
EXTRA_DIST += tools/metrics
# End of tools
