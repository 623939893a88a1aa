# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/train/test_vote
tests_train_test_vote_SOURCES = tests/train/test_vote.c
tests_train_test_vote_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_vote_CFLAGS = $(TEST_CFLAGS)
tests_train_test_vote_LDADD = $(TRAIN_LIBS) libranks.la $(TEST_LIBS)

check_PROGRAMS += tests/train/test_touch
tests_train_test_touch_SOURCES = tests/train/test_touch.c
tests_train_test_touch_CFLAGS = $(TEST_CFLAGS)
tests_train_test_touch_LDADD = $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_inputs
tests_train_test_inputs_SOURCES = tests/train/test_inputs.c
tests_train_test_inputs_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_inputs_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_inputs_LDADD = libharness.la $(TRAIN_LIBS) libranks.la $(TEST_LIBS)

check_PROGRAMS += tests/train/test_finite
tests_train_test_finite_SOURCES = tests/train/test_finite.c
tests_train_test_finite_CFLAGS = $(TEST_CFLAGS)
tests_train_test_finite_LDADD = $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_config
tests_train_test_config_SOURCES = tests/train/test_config.c
tests_train_test_config_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_config_LDADD = $(TRAIN_LIBS) $(TEST_LIBS)

check_LTLIBRARIES += liballoc.la libharness.la
liballoc_la_SOURCES = tests/lib/alloc_count.c tests/lib/alloc_count.h
liballoc_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
liballoc_la_CFLAGS = $(AM_CFLAGS)
libharness_la_SOURCES = tests/train/harness.c tests/train/harness.h
libharness_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
libharness_la_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)

check_PROGRAMS += tests/train/test_run
tests_train_test_run_SOURCES = tests/train/test_run.c
tests_train_test_run_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_run_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_run_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_changes
tests_train_test_changes_SOURCES = tests/train/test_changes.c
tests_train_test_changes_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_changes_LDADD = $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_rundir
tests_train_test_rundir_SOURCES = tests/train/test_rundir.c
tests_train_test_rundir_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_rundir_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_rundir_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_keep
tests_train_test_keep_SOURCES = tests/train/test_keep.c
tests_train_test_keep_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_keep_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_keep_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_last_words
tests_train_test_last_words_SOURCES = tests/train/test_last_words.c
tests_train_test_last_words_CFLAGS = $(TEST_CFLAGS)
tests_train_test_last_words_LDADD = libtrain.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/train/test_planted
tests_train_test_planted_SOURCES = tests/train/test_planted.c
tests_train_test_planted_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_planted_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_planted_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_reproducible
tests_train_test_reproducible_SOURCES = tests/train/test_reproducible.c
tests_train_test_reproducible_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_reproducible_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) \
	$(MPI_CFLAGS)
tests_train_test_reproducible_LDADD = libharness.la $(TRAIN_LIBS) \
	$(TEST_LIBS)

check_PROGRAMS += tests/train/test_score
tests_train_test_score_SOURCES = tests/train/test_score.c
tests_train_test_score_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_score_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_score_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_lone
tests_train_test_lone_SOURCES = tests/train/test_lone.c
tests_train_test_lone_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_lone_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_lone_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_updates
tests_train_test_updates_SOURCES = tests/train/test_updates.c
tests_train_test_updates_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_updates_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_updates_LDADD = libharness.la $(TRAIN_LIBS) $(HDF5_LIBS) \
	$(TEST_LIBS)

check_PROGRAMS += tests/train/test_weigh
tests_train_test_weigh_SOURCES = tests/train/test_weigh.c
tests_train_test_weigh_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_weigh_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_weigh_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_fields
tests_train_test_fields_SOURCES = tests/train/test_fields.c
tests_train_test_fields_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_fields_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_fields_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_hook
tests_train_test_hook_SOURCES = tests/train/test_hook.c
tests_train_test_hook_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_hook_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_hook_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_local_sgd
tests_train_test_local_sgd_SOURCES = tests/train/test_local_sgd.c
tests_train_test_local_sgd_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_local_sgd_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_local_sgd_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS) -lm

check_PROGRAMS += tests/train/test_step_alloc
tests_train_test_step_alloc_SOURCES = tests/train/test_step_alloc.c
tests_train_test_step_alloc_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_step_alloc_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) \
	$(MPI_CFLAGS)
tests_train_test_step_alloc_LDADD = liballoc.la libharness.la $(TRAIN_LIBS) \
	$(TEST_LIBS)

check_PROGRAMS += tests/train/test_zero
tests_train_test_zero_SOURCES = tests/train/test_zero.c
tests_train_test_zero_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_zero_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_zero_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_pairs
tests_train_test_pairs_SOURCES = tests/train/test_pairs.c
tests_train_test_pairs_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_pairs_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_pairs_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_plateau
tests_train_test_plateau_SOURCES = tests/train/test_plateau.c
tests_train_test_plateau_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_plateau_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_plateau_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_patience
tests_train_test_patience_SOURCES = tests/train/test_patience.c
tests_train_test_patience_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_patience_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_patience_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_marks
tests_train_test_marks_SOURCES = tests/train/test_marks.c
tests_train_test_marks_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_marks_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_marks_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)

check_PROGRAMS += tests/train/test_same
tests_train_test_same_SOURCES = tests/train/test_same.c \
	tests/hdf5io/files.c tests/hdf5io/files.h \
	tests/hdf5io/open.c tests/hdf5io/open.h
tests_train_test_same_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_same_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_same_LDADD = $(TRAIN_LIBS) libranks.la $(TEST_LIBS) \
	$(HDF5_LIBS)

check_PROGRAMS += tests/train/test_sync
tests_train_test_sync_SOURCES = tests/train/test_sync.c
tests_train_test_sync_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_train_test_sync_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_train_test_sync_LDADD = libharness.la $(TRAIN_LIBS) $(TEST_LIBS)
# End of tests/train
