/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the files of the stand-in for cuDNN share: fake_cudnn.c keeps
 * descriptors and their attributes, fake_cudnn_plan.c makes and runs plans,
 * fake_conv.c and fake_attention.c compute.
 */
#ifndef CDDP_TESTS_CUDA_FAKE_CUDNN_H
#define CDDP_TESTS_CUDA_FAKE_CUDNN_H

#include <cudnn.h>

#include "fake_conv.h"
#include "fake_cudart.h"

#define CONV(name) CUDNN_ATTR_OPERATION_CONVOLUTION_##name

struct cudnnContext {
    cudaStream_t stream;
};

typedef struct attribute {
    struct attribute *next;
    cudnnBackendAttributeName_t name;
    int64_t count;
    char data[]; /* [count] elements; of descriptors, pointers */
} attribute_t;

typedef struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
    int owners; /* the caller and the descriptors that contain it */
    attribute_t *attributes;
    /* ENGINE, ENGINECFG, EXECUTION_PLAN: number of the engine and the graph. */
    int engine;
    struct descriptor *graph;
    fake_conv_t conv;               /* EXECUTION_PLAN */
    struct fake_program *attention; /* EXECUTION_PLAN; NULL: a convolution */
} descriptor_t;

/* Frame a call, as fake_begin and fake_end do. */
cudnnStatus_t fake_dnn_begin(const char *name);
cudnnStatus_t fake_dnn_end(cudnnStatus_t status);
/* Keep the sentence for cudnnGetLastErrorString, and return [status]. */
cudnnStatus_t fake_dnn_complain(cudnnStatus_t status, const char *what,
                                int64_t n);

/* NULL: it has no such attribute. */
attribute_t *fake_dnn_find(const descriptor_t *of,
                           cudnnBackendAttributeName_t name);
/* The value of an attribute that is there; of one that is a descriptor. */
const void *fake_dnn_value(const descriptor_t *of,
                           cudnnBackendAttributeName_t name);
descriptor_t *fake_dnn_child(const descriptor_t *of,
                             cudnnBackendAttributeName_t name);
/* The first attribute that [of] must have and lacks; 0: none. */
int fake_dnn_missing(const descriptor_t *of);
/* Read a tensor of up to five dimensions. All types but bfloat16 are read as
 * float32. */
void fake_tensor_read(const descriptor_t *of, fake_tensor_t *to);
/* The address that the pack gives for [tensor]; NULL: it gives none. */
void *fake_dnn_address(const descriptor_t *pack, const fake_tensor_t *tensor);
/* Is the tensor at [at] in the device's memory, and aligned? */
cudnnStatus_t fake_dnn_tensor_check(const fake_tensor_t *tensor,
                                    const void *at);
/* Get the workspace of a pack, which must have at least [bytes]. */
cudnnStatus_t fake_dnn_workspace(const descriptor_t *pack, int64_t bytes,
                                 void **out);
/* One owner less; NULL allowed. */
void fake_dnn_drop(descriptor_t *object);

#endif
