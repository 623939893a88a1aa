# SPDX-License-Identifier: BSD-3-Clause
# Tests mirror the sources. A test is one Criterion program of one file,
# tests/FOLDER/test_NAME.c: add its name to FOLDER_TESTS in tests/FOLDER/local.mk.
# It is then compiled with the flags below and linked with the libraries of its
# folder. What several tests share is in libfixtures; only what is used gets linked.
TEST_LIBS = $(CRITERION_LIBS) -lm
TEST_CFLAGS = $(CRITERION_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS) $(UCX_CFLAGS) \
	$(JANSSON_CFLAGS) $(HWLOC_CFLAGS)
tests/%.o: AM_CFLAGS += $(TEST_CFLAGS)
tests/%.o: AM_CPPFLAGS += -I$(srcdir)/tests
tests/%.lo: AM_CFLAGS += $(TEST_CFLAGS)
tests/%.lo: AM_CPPFLAGS += -I$(srcdir)/tests

check_LTLIBRARIES += libfixtures.la liballoc.la liballocfail.la libiocount.la \
	libiotape.la
libfixtures_la_SOURCES = \
	tests/cmd/ckpt_command.h \
	tests/comm/collectives.c tests/comm/collectives.h \
	tests/comm/far_ranks.c tests/comm/far_ranks.h \
	tests/comm/nccl_rig.c tests/comm/nccl_rig.h \
	tests/comm/waits.c tests/comm/waits.h \
	tests/comm/node/node_ranks.c tests/comm/node/node_ranks.h \
	tests/ddp/hook_fixture.c tests/ddp/hook_fixture.h \
	tests/ddp/hook_turns.c tests/ddp/hook_turns.h \
	tests/hdf5io/catalogue_facts.h \
	tests/hdf5io/chunk_files.c tests/hdf5io/chunk_files.h \
	tests/hdf5io/ckpt_fixture.c tests/hdf5io/ckpt_fixture.h \
	tests/hdf5io/ckpt_parts.c tests/hdf5io/ckpt_parts.h \
	tests/hdf5io/crash_scenes.c tests/hdf5io/crash_scenes.h \
	tests/hdf5io/files.c tests/hdf5io/files.h \
	tests/hdf5io/nodesets.c tests/hdf5io/nodesets.h \
	tests/hdf5io/open.c tests/hdf5io/open.h \
	tests/hdf5io/sampler_plan.c tests/hdf5io/sampler_plan.h \
	tests/import/import_fixture.c tests/import/import_fixture.h \
	tests/lib/entries.h tests/lib/facts.h tests/lib/file_tree.h tests/lib/german.h \
	tests/lib/fcntls.h tests/lib/halted.h tests/lib/no_locks.h \
	tests/lib/slow_storage.h \
	tests/lib/ranks.c tests/lib/ranks.h \
	tests/lib/ranks_boot.c tests/lib/ranks_boot.h \
	tests/nn/fixture.c tests/nn/fixture.h \
	tests/nn/fixture_dev.c tests/nn/fixture_dev.h \
	tests/nn/preset_formula.c tests/nn/preset_formula.h \
	tests/cuda/emu.c tests/cuda/emu.h tests/cuda/fake_cuda.h \
	tests/op/op_cases.c tests/op/op_cases.h \
	tests/op/op_compare.c tests/op/op_compare.h \
	tests/op/op_differences.c tests/op/op_differences.h \
	tests/op/op_rig.c tests/op/op_rig.h \
	tests/op/op_rig_dev.c tests/op/op_rig_dev.h \
	tests/op/rows_activation.inc \
	tests/op/rows_batchnorm.inc \
	tests/op/rows_combine.inc \
	tests/op/rows_conv.inc \
	tests/op/rows_dropout.inc \
	tests/op/rows_linear.inc \
	tests/op/rows_loss.inc \
	tests/op/rows_norm.inc \
	tests/op/rows_perf.inc \
	tests/op/rows_pointwise.inc \
	tests/op/rows_pool.inc \
	tests/op/rows_recurrent.inc \
	tests/op/rows_reduce.inc \
	tests/op/rows_resize.inc \
	tests/op/rows_softmax.inc \
	tests/op/rows_broadcast.inc \
	tests/op/rows_token.inc \
	tests/op/rows_transpose.inc \
	tests/op/rows_view.inc \
	tests/op/rows_window.inc \
	tests/optim/optim_rig.c tests/optim/optim_rig.h \
	tests/optim/place_checks.c tests/optim/place_checks.h \
	tests/optim/place_rig.c tests/optim/place_rig.h \
	tests/train/harness.c tests/train/harness.h \
	tests/train/killed.c tests/train/killed.h \
	tests/train/saves.c tests/train/saves.h
# Apart, as it replaces malloc in the programs that link it.
liballoc_la_SOURCES = tests/lib/alloc_count.c tests/lib/alloc_count.h
# Apart, as it replaces posix_memalign.
liballocfail_la_SOURCES = tests/lib/alloc_fail.c tests/lib/alloc_fail.h
# Apart, as it replaces open and pread. io_watch is the same code, to be preloaded.
libiocount_la_SOURCES = tests/lib/io_count.c tests/lib/io_count.h \
	tests/lib/opens.h
check_LTLIBRARIES += tests/lib/io_watch.la
tests_lib_io_watch_la_SOURCES = $(libiocount_la_SOURCES)
tests_lib_io_watch_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
# Apart, as it replaces all calls that change files.
libiotape_la_SOURCES = tests/lib/io_tape.c tests/lib/io_tape.h \
	tests/lib/opens.h \
	tests/lib/power_loss.c tests/lib/power_loss.h

dist_check_SCRIPTS += tests/verdicts.sh
EXTRA_DIST += tests/bench tests/data tests/python

include tests/base/local.mk
include tests/conf/local.mk
include tests/boot/local.mk
include tests/comm/local.mk
include tests/dev/local.mk
include tests/cuda/local.mk
include tests/simd/local.mk
include tests/op/local.mk
include tests/nn/local.mk
include tests/optim/local.mk
include tests/ddp/local.mk
include tests/obs/local.mk
include tests/report/local.mk
include tests/train/local.mk
include tests/api/local.mk
include tests/cmd/local.mk
include tests/hdf5io/local.mk
include tests/import/local.mk
include tests/fuzz/local.mk
include tests/gpu/local.mk
include tests/site/local.mk
include tests/slurm/local.mk

# Several tests run at a time on each core: threads that spun while they wait would take
# it from the others. Set OMP_WAIT_POLICY=active to run them as users do by default.
AM_TESTS_ENVIRONMENT += \
	OMP_WAIT_POLICY=$${OMP_WAIT_POLICY:-passive}; export OMP_WAIT_POLICY;
