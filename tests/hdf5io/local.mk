# SPDX-License-Identifier: BSD-3-Clause
# Checkpoint
CKPT_TEST_LIBS = libhdf5io.la libbase.la $(HDF5_LIBS) $(TEST_LIBS)
CKPT_FIXTURE = tests/hdf5io/ckpt_fixture.c tests/hdf5io/ckpt_fixture.h
CKPT_TEST_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
check_PROGRAMS += tests/hdf5io/test_checkpoint
tests_hdf5io_test_checkpoint_SOURCES = tests/hdf5io/test_checkpoint.c $(CKPT_FIXTURE)
tests_hdf5io_test_checkpoint_CFLAGS = $(CKPT_TEST_CFLAGS)
tests_hdf5io_test_checkpoint_LDADD = $(CKPT_TEST_LIBS)
check_PROGRAMS += tests/hdf5io/test_checkpoint_box
tests_hdf5io_test_checkpoint_box_SOURCES = tests/hdf5io/test_checkpoint_box.c
tests_hdf5io_test_checkpoint_box_CFLAGS = $(CKPT_TEST_CFLAGS)
tests_hdf5io_test_checkpoint_box_LDADD = $(CKPT_TEST_LIBS)
check_PROGRAMS += tests/hdf5io/test_checkpoint_damage
tests_hdf5io_test_checkpoint_damage_SOURCES = tests/hdf5io/test_checkpoint_damage.c $(CKPT_FIXTURE)
tests_hdf5io_test_checkpoint_damage_CFLAGS = $(CKPT_TEST_CFLAGS)
tests_hdf5io_test_checkpoint_damage_LDADD = $(CKPT_TEST_LIBS)
check_PROGRAMS += tests/hdf5io/test_checkpoint_fault
tests_hdf5io_test_checkpoint_fault_SOURCES = tests/hdf5io/test_checkpoint_fault.c $(CKPT_FIXTURE)
tests_hdf5io_test_checkpoint_fault_CFLAGS = $(CKPT_TEST_CFLAGS)
tests_hdf5io_test_checkpoint_fault_LDADD = $(CKPT_TEST_LIBS)
check_PROGRAMS += tests/hdf5io/test_checkpoint_h5py
tests_hdf5io_test_checkpoint_h5py_SOURCES = tests/hdf5io/test_checkpoint_h5py.c $(CKPT_FIXTURE)
tests_hdf5io_test_checkpoint_h5py_CFLAGS = $(CKPT_TEST_CFLAGS)
tests_hdf5io_test_checkpoint_h5py_LDADD = $(CKPT_TEST_LIBS)
EXTRA_DIST += tests/hdf5io/h5py_read.py
# End of checkpoint
