/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A stand-in for the backend API of cuDNN: it keeps the attributes of its
 * descriptors, proposes engines for a graph of one convolution or one
 * attention, and refuses every other graph, descriptor and attribute.
 *
 * It proposes, in mode A, an engine that is not deterministic and fails when it
 * runs, one for tensor cores, which rounds float32 to tf32, and an exact one;
 * as a fallback an exact one without workspace.
 */
#include "fake_attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is known ------------------------------------------------------- */

/* Attributes that may be set. */
static const struct known {
    cudnnBackendDescriptorType_t in;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t most; /* elements */
} known[] = {
#define KNOWN(in, name, type, ...)                                            \
    {                                                                         \
        CUDNN_BACKEND_##in##_DESCRIPTOR, name, CUDNN_TYPE_##type, __VA_ARGS__ \
    }
    KNOWN(TENSOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, INT64, 1),
    KNOWN(TENSOR, CUDNN_ATTR_TENSOR_DATA_TYPE, DATA_TYPE, 1),
    KNOWN(TENSOR, CUDNN_ATTR_TENSOR_DIMENSIONS, INT64, 5),
    KNOWN(TENSOR, CUDNN_ATTR_TENSOR_STRIDES, INT64, 5),
    KNOWN(TENSOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, INT64, 1),
    KNOWN(TENSOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, BOOLEAN, 1),
    KNOWN(TENSOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, BOOLEAN, 1),
    KNOWN(CONVOLUTION, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, INT64, 1),
    KNOWN(CONVOLUTION, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, DATA_TYPE, 1),
    KNOWN(CONVOLUTION, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1),
    KNOWN(CONVOLUTION, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, INT64, 3),
    KNOWN(CONVOLUTION, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, INT64, 3),
    KNOWN(CONVOLUTION, CUDNN_ATTR_CONVOLUTION_DILATIONS, INT64, 3),
    KNOWN(CONVOLUTION, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, INT64, 3),
#define OPERATION(op, prefix, x, w, y)                              \
    KNOWN(op, CONV(prefix##_ALPHA), FLOAT, 1),                      \
        KNOWN(op, CONV(prefix##_BETA), FLOAT, 1),                   \
        KNOWN(op, CONV(prefix##_CONV_DESC), BACKEND_DESCRIPTOR, 1), \
        KNOWN(op, CONV(prefix##_##x), BACKEND_DESCRIPTOR, 1),       \
        KNOWN(op, CONV(prefix##_##w), BACKEND_DESCRIPTOR, 1),       \
        KNOWN(op, CONV(prefix##_##y), BACKEND_DESCRIPTOR, 1)
    OPERATION(OPERATION_CONVOLUTION_FORWARD, FORWARD, X, W, Y),
    OPERATION(OPERATION_CONVOLUTION_BACKWARD_DATA, BWD_DATA, DX, W, DY),
    OPERATION(OPERATION_CONVOLUTION_BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
#undef OPERATION
    KNOWN(POINTWISE, CUDNN_ATTR_POINTWISE_MODE, POINTWISE_MODE, 1),
    KNOWN(POINTWISE, CUDNN_ATTR_POINTWISE_MATH_PREC, DATA_TYPE, 1),
    KNOWN(POINTWISE, CUDNN_ATTR_POINTWISE_AXIS, INT64, 1),
    KNOWN(MATMUL, CUDNN_ATTR_MATMUL_COMP_TYPE, DATA_TYPE, 1),
    KNOWN(REDUCTION, CUDNN_ATTR_REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1),
    KNOWN(REDUCTION, CUDNN_ATTR_REDUCTION_COMP_TYPE, DATA_TYPE, 1),
#define PART(op, name)                                        \
    KNOWN(OPERATION_##op, CUDNN_ATTR_OPERATION_##op##_##name, \
          BACKEND_DESCRIPTOR, 1)
    PART(POINTWISE, PW_DESCRIPTOR),
    PART(POINTWISE, XDESC),
    PART(POINTWISE, BDESC),
    PART(POINTWISE, TDESC),
    PART(POINTWISE, YDESC),
    PART(MATMUL, ADESC),
    PART(MATMUL, BDESC),
    PART(MATMUL, CDESC),
    PART(MATMUL, DESC),
    PART(REDUCTION, XDESC),
    PART(REDUCTION, YDESC),
    PART(REDUCTION, DESC),
    PART(RESHAPE, XDESC),
    PART(RESHAPE, YDESC),
#undef PART
    KNOWN(OPERATIONGRAPH, CUDNN_ATTR_OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR,
          32),
    KNOWN(OPERATIONGRAPH, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, HANDLE, 1),
    KNOWN(ENGINEHEUR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR,
          1),
    KNOWN(ENGINEHEUR, CUDNN_ATTR_ENGINEHEUR_MODE, HEUR_MODE, 1),
    KNOWN(EXECUTION_PLAN, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
          BACKEND_DESCRIPTOR, 1),
    KNOWN(EXECUTION_PLAN, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, HANDLE, 1),
    KNOWN(VARIANT_PACK, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, VOID_PTR, 16),
    KNOWN(VARIANT_PACK, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, INT64, 16),
    KNOWN(VARIANT_PACK, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, VOID_PTR, 1),
#undef KNOWN
};

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
        return 8;
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(void *);
    default:
        return 4; /* enumerations and float */
    }
}

/* ---- frame --------------------------------------------------------------- */

static char last_error[256]; /* under the lock of all calls */

cudnnStatus_t fake_dnn_complain(cudnnStatus_t status, const char *what,
                                int64_t n)
{
    snprintf(last_error, sizeof last_error, "%s: %s %lld", fake.last_call, what,
             (long long)n);
    return status;
}

cudnnStatus_t fake_dnn_begin(const char *name)
{
    const cudaError_t error = fake_begin(name);

    last_error[0] = '\0';
    if (error == cudaSuccess)
        return CUDNN_STATUS_SUCCESS;
    return fake_dnn_complain(CUDNN_STATUS_EXECUTION_FAILED, "CUDA's error",
                             error);
}

cudnnStatus_t fake_dnn_end(cudnnStatus_t status)
{
    fake_end_library();
    return status;
}

size_t cudnnGetVersion(void)
{
    return fake.settings.cudnn > 0 ? (size_t)fake.settings.cudnn
                                   : CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
}

void cudnnGetLastErrorString(char *message, size_t bytes)
{
    snprintf(message, bytes, "%s", last_error);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    cudnnStatus_t status = fake_dnn_begin("cudnnCreate");

    if (status == CUDNN_STATUS_SUCCESS &&
        (*out = calloc(1, sizeof **out)) == NULL)
        status = CUDNN_STATUS_ALLOC_FAILED;
    if (status == CUDNN_STATUS_SUCCESS)
        fake.counts.objects++;
    return fake_dnn_end(status);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    const cudnnStatus_t status = fake_dnn_begin("cudnnDestroy");

    free(handle);
    fake.counts.objects--;
    return fake_dnn_end(status);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    const cudnnStatus_t status = fake_dnn_begin("cudnnSetStream");

    if (status == CUDNN_STATUS_SUCCESS)
        handle->stream = stream;
    return fake_dnn_end(status);
}

/* ---- descriptors --------------------------------------------------------- */

static const struct known *known_find(cudnnBackendDescriptorType_t type,
                                      cudnnBackendAttributeName_t name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].in == type && known[i].name == name)
            return &known[i];
    return NULL;
}

attribute_t *fake_dnn_find(const descriptor_t *of,
                           cudnnBackendAttributeName_t name)
{
    attribute_t *attribute = of->attributes;

    while (attribute != NULL && attribute->name != name)
        attribute = attribute->next;
    return attribute;
}

/* The value of an attribute that is there. */
const void *fake_dnn_value(const descriptor_t *of,
                           cudnnBackendAttributeName_t name)
{
    return fake_dnn_find(of, name)->data;
}

descriptor_t *fake_dnn_child(const descriptor_t *of,
                             cudnnBackendAttributeName_t name)
{
    return *(descriptor_t *const *)fake_dnn_value(of, name);
}

static bool is_children(const descriptor_t *of, const attribute_t *attribute)
{
    return known_find(of->type, attribute->name)->type ==
           CUDNN_TYPE_BACKEND_DESCRIPTOR;
}

static void attribute_free(const descriptor_t *of, attribute_t *attribute)
{
    if (is_children(of, attribute))
        for (int64_t i = 0; i < attribute->count; i++)
            fake_dnn_drop(((descriptor_t **)attribute->data)[i]);
    free(attribute);
}

/* One owner less. */
void fake_dnn_drop(descriptor_t *object)
{
    if (object == NULL || --object->owners > 0)
        return;
    while (object->attributes != NULL) {
        attribute_t *attribute = object->attributes;

        object->attributes = attribute->next;
        attribute_free(object, attribute);
    }
    fake_dnn_drop(object->graph);
    fake_attention_free(object->attention);
    free(object);
}

static bool type_known(cudnnBackendDescriptorType_t type)
{
    if (type == CUDNN_BACKEND_ENGINE_DESCRIPTOR ||
        type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].in == type)
            return true;
    return false;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    cudnnStatus_t status = fake_dnn_begin("cudnnBackendCreateDescriptor");
    descriptor_t *made = NULL;

    if (status == CUDNN_STATUS_SUCCESS && !type_known(type))
        status =
            fake_dnn_complain(CUDNN_STATUS_NOT_SUPPORTED, "descriptor", type);
    if (status == CUDNN_STATUS_SUCCESS &&
        (made = calloc(1, sizeof *made)) == NULL)
        status = CUDNN_STATUS_ALLOC_FAILED;
    if (status == CUDNN_STATUS_SUCCESS) {
        made->type = type;
        made->owners = 1;
        fake.counts.objects++;
        *out = made;
    }
    return fake_dnn_end(status);
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t object)
{
    const cudnnStatus_t status =
        fake_dnn_begin("cudnnBackendDestroyDescriptor");

    fake_dnn_drop(object);
    fake.counts.objects--;
    return fake_dnn_end(status);
}

/* May these values be set? */
static cudnnStatus_t set_check(const descriptor_t *of, const struct known *is,
                               cudnnBackendAttributeName_t name,
                               cudnnBackendAttributeType_t type, int64_t count)
{
    if (of == NULL || of->final)
        return fake_dnn_complain(CUDNN_STATUS_BAD_PARAM, "finalised before",
                                 name);
    if (is == NULL)
        return fake_dnn_complain(CUDNN_STATUS_NOT_SUPPORTED,
                                 "unknown attribute", name);
    if (is->type != type)
        return fake_dnn_complain(CUDNN_STATUS_BAD_PARAM, "type of attribute",
                                 name);
    if (count < 1 || count > is->most)
        return fake_dnn_complain(CUDNN_STATUS_BAD_PARAM, "size of attribute",
                                 name);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t children_own(const attribute_t *attribute)
{
    descriptor_t *const *children = (descriptor_t *const *)attribute->data;

    for (int64_t i = 0; i < attribute->count; i++)
        if (children[i] == NULL || !children[i]->final)
            return fake_dnn_complain(
                CUDNN_STATUS_BAD_PARAM,
                "a descriptor is not finalised, in attribute", attribute->name);
    for (int64_t i = 0; i < attribute->count; i++)
        children[i]->owners++;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t object,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *values)
{
    cudnnStatus_t status = fake_dnn_begin("cudnnBackendSetAttribute");
    descriptor_t *of = object;
    const size_t bytes = (size_t)count * size_of(type);
    attribute_t *made = NULL;

    if (status == CUDNN_STATUS_SUCCESS)
        status = set_check(of, known_find(of->type, name), name, type, count);
    if (status == CUDNN_STATUS_SUCCESS && fake_dnn_find(of, name) != NULL)
        status = fake_dnn_complain(CUDNN_STATUS_BAD_PARAM,
                                   "set twice: attribute", name);
    if (status == CUDNN_STATUS_SUCCESS &&
        (made = calloc(1, sizeof *made + bytes)) == NULL)
        status = CUDNN_STATUS_ALLOC_FAILED;
    if (status != CUDNN_STATUS_SUCCESS)
        return fake_dnn_end(status);
    made->name = name;
    made->count = count;
    memcpy(made->data, values, bytes);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        status = children_own(made);
    if (status == CUDNN_STATUS_SUCCESS) {
        made->next = of->attributes;
        of->attributes = made;
    } else {
        free(made);
    }
    return fake_dnn_end(status);
}

/* The first two attributes are set only where they are true, the others only
 * where a pointwise operation needs them. */
static bool optional(cudnnBackendAttributeName_t name)
{
    return name == CUDNN_ATTR_TENSOR_IS_VIRTUAL ||
           name == CUDNN_ATTR_TENSOR_IS_BY_VALUE ||
           name == CUDNN_ATTR_POINTWISE_AXIS ||
           name == CUDNN_ATTR_OPERATION_POINTWISE_BDESC ||
           name == CUDNN_ATTR_OPERATION_POINTWISE_TDESC;
}

int fake_dnn_missing(const descriptor_t *of)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].in == of->type && !optional(known[i].name) &&
            fake_dnn_find(of, known[i].name) == NULL)
            return known[i].name;
    return 0;
}
