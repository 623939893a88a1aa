# SPDX-License-Identifier: BSD-3-Clause
TRAIN_TESTS = \
	tests/train/test_async \
	tests/train/test_async_kill \
	tests/train/test_async_peer \
	tests/train/test_best \
	tests/train/test_changes \
	tests/train/test_clocks \
	tests/train/test_config \
	tests/train/test_deadline \
	tests/train/test_device \
	tests/train/test_fields \
	tests/train/test_finite \
	tests/train/test_hook \
	tests/train/test_init \
	tests/train/test_inputs \
	tests/train/test_intro \
	tests/train/test_keep \
	tests/train/test_last_words \
	tests/train/test_leave \
	tests/train/test_line \
	tests/train/test_local_sgd \
	tests/train/test_lone \
	tests/train/test_look \
	tests/train/test_look_opens \
	tests/train/test_marks \
	tests/train/test_nodeset \
	tests/train/test_oom \
	tests/train/test_order \
	tests/train/test_owner \
	tests/train/test_pairs \
	tests/train/test_partners \
	tests/train/test_patience \
	tests/train/test_planted \
	tests/train/test_plateau \
	tests/train/test_reads \
	tests/train/test_reproducible \
	tests/train/test_run \
	tests/train/test_rollback_kill \
	tests/train/test_rundir \
	tests/train/test_same \
	tests/train/test_save_failed \
	tests/train/test_save_stuck \
	tests/train/test_saver \
	tests/train/test_score \
	tests/train/test_spike \
	tests/train/test_stage \
	tests/train/test_step_alloc \
	tests/train/test_straggler \
	tests/train/test_sweeper \
	tests/train/test_sync \
	tests/train/test_touch \
	tests/train/test_trace \
	tests/train/test_updates \
	tests/train/test_values \
	tests/train/test_vote \
	tests/train/test_weigh \
	tests/train/test_writers \
	tests/train/test_zero
check_PROGRAMS += $(TRAIN_TESTS)
TRAIN_TEST_LIBS = libfixtures.la $(TRAIN_LIBS)
$(TRAIN_TESTS): $(TRAIN_TEST_LIBS)
$(TRAIN_TESTS): LDADD = $(TRAIN_TEST_LIBS) $(HDF5_LIBS) $(TEST_LIBS)
# test_rollback_kill replaces these functions, and dies in them.
ROLLBACK_WRAPS = obs_lives_append hdf5io_checkpoint_read train_mirror_push \
	hdf5io_loader_close hdf5io_loader_open obs_metrics_open train_turn_load
tests_train_test_rollback_kill_LDFLAGS = $(AM_LDFLAGS) \
	$(ROLLBACK_WRAPS:%=-Wl,--wrap=%)
# test_async_kill replaces these functions, and dies in them.
ASYNC_WRAPS = hdf5io_io_create hdf5io_io_flush hdf5io_io_sync \
	hdf5io_dir_publish obs_lives_append train_saver_start train_saver_join
tests_train_test_async_kill_LDFLAGS = $(AM_LDFLAGS) $(ASYNC_WRAPS:%=-Wl,--wrap=%)
# test_saver replaces these functions.
tests_train_test_saver_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=hdf5io_share_buffer,--wrap=train_patience_open
tests_train_test_async_peer_SOURCES = tests/train/test_async_peer.c \
	tests/train/harness_forks.c tests/train/harness_forks.h
# test_async_peer and test_save_failed replace this function.
tests_train_test_async_peer_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=train_saver_join
tests_train_test_save_failed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=train_saver_join
# test_sweeper replaces this function.
tests_train_test_sweeper_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=train_sweeper_wait
# test_save_stuck replaces these functions.
tests_train_test_save_stuck_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=hdf5io_checkpoint_write,--wrap=hdf5io_nodeset_write
# test_line replaces this function.
tests_train_test_line_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=file_remove_tree
# test_clocks replaces these functions.
tests_train_test_clocks_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=clock_now,--wrap=comm_allgather
# test_straggler replaces these functions.
tests_train_test_straggler_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=train_straggler_due,--wrap=train_straggler_look
tests_train_test_trace_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_train_test_step_alloc_LDADD = liballoc.la $(LDADD)
tests_train_test_sync_LDADD = liballocfail.la $(LDADD) -ldl
tests_train_test_look_opens_LDADD = libiocount.la $(LDADD)

# This test uses emulated GPUs.
check_PROGRAMS += tests/train/test_nccl
tests_train_test_nccl_SOURCES = tests/train/test_nccl.c \
	tests/train/harness_forks.c tests/train/harness_forks.h
tests_train_test_nccl_LDADD = $(TRAIN_TEST_LIBS) $(HDF5_LIBS) $(TEST_LIBS) -ldl
EXTRA_tests_train_test_nccl_DEPENDENCIES = $(TRAIN_TEST_LIBS) $(EMU_MODULE)

# On the test device.
TRAIN_FAR_TESTS = \
	tests/train/test_bench \
	tests/train/test_far \
	tests/train/test_feed \
	tests/train/test_memory \
	tests/train/test_mirror \
	tests/train/test_predict \
	tests/train/test_rollback
check_PROGRAMS += $(TRAIN_FAR_TESTS)
$(TRAIN_FAR_TESTS): libfar.la $(TRAIN_TEST_LIBS)
$(TRAIN_FAR_TESTS): LDADD = libfar.la $(TRAIN_TEST_LIBS) $(HDF5_LIBS) $(TEST_LIBS)
$(TRAIN_FAR_TESTS): AM_LDFLAGS += $(FAR_FLAGS) $(OPTIM_FAR_FLAGS)
# End of tests/train
