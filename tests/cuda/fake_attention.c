/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "fake_attention.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>

#define DIMS 4
#define FEATURES_MAX 128

/* The operations of both graphs as regular expressions, one letter for each
 * operation: m is matmul, M and + are reductions by maximum and sum, v is
 * reshape, > is "at least", s is select. "ii>s" is there if the attention is
 * causal, "la" in training. In the backward graph, "+" after "m" sums the heads
 * of a group. */
#define FORWARD "^m[*](ii>s)?M-e[+](la)?/m$"
#define BACKWARD "^[*][+][*]m[*]-(ii>s)?evm[+]?m-[*][*]vm[+]?vm$"

typedef struct step {
    char letter;
    int64_t axis;   /* of an index operation */
    int x, b, t, y; /* tensors; -1: none */
} step_t;

struct fake_program {
    fake_tensor_t tensors[FAKE_STEP_TENSORS];
    bool inner[FAKE_STEP_TENSORS], number[FAKE_STEP_TENSORS];
    int tensor_count, step_count;
    step_t steps[FAKE_STEPS];
    int64_t workspace;
    fake_program_t *next; /* in the list of freed programs */
};

static fake_program_t *freed; /* protected by fake_lock */

/* ---- from descriptors ---------------------------------------------------- */

static bool is_set(const descriptor_t *of, cudnnBackendAttributeName_t name)
{
    return fake_dnn_find(of, name) != NULL;
}

/* The index of the tensor in attribute [name] of [op]; -1: there is none. */
static int tensor_of(fake_program_t *p, const descriptor_t *op,
                     cudnnBackendAttributeName_t name)
{
    const descriptor_t *of;
    int64_t uid;
    int i = 0;

    if (!is_set(op, name))
        return -1;
    of = fake_dnn_child(op, name);
    uid = *(const int64_t *)fake_dnn_value(of, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    while (i < p->tensor_count && p->tensors[i].uid != uid)
        i++;
    if (i == p->tensor_count && i < FAKE_STEP_TENSORS) {
        fake_tensor_read(of, &p->tensors[i]);
        p->inner[i] = is_set(of, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
        p->number[i] = is_set(of, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
        p->tensor_count++;
    }
    return i < FAKE_STEP_TENSORS ? i : -1;
}

static char pointwise_letter(const descriptor_t *curve)
{
    static const struct {
        cudnnPointwiseMode_t mode;
        char letter;
    } modes[] = {
        {CUDNN_POINTWISE_MUL, '*'},          {CUDNN_POINTWISE_SUB, '-'},
        {CUDNN_POINTWISE_ADD, 'a'},          {CUDNN_POINTWISE_DIV, '/'},
        {CUDNN_POINTWISE_EXP, 'e'},          {CUDNN_POINTWISE_LOG, 'l'},
        {CUDNN_POINTWISE_GEN_INDEX, 'i'},    {CUDNN_POINTWISE_CMP_GE, '>'},
        {CUDNN_POINTWISE_BINARY_SELECT, 's'}};
    const cudnnPointwiseMode_t mode =
        *(const cudnnPointwiseMode_t *)fake_dnn_value(
            curve, CUDNN_ATTR_POINTWISE_MODE);

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (modes[i].mode == mode)
            return modes[i].letter;
    return '?';
}

static step_t pointwise_read(fake_program_t *p, const descriptor_t *op)
{
    const descriptor_t *curve =
        fake_dnn_child(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    step_t step = {.letter = pointwise_letter(curve),
                   .x = tensor_of(p, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                   .b = tensor_of(p, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                   .t = tensor_of(p, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC),
                   .y = tensor_of(p, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC)};

    if (step.letter == 'i' && is_set(curve, CUDNN_ATTR_POINTWISE_AXIS))
        step.axis =
            *(const int64_t *)fake_dnn_value(curve, CUDNN_ATTR_POINTWISE_AXIS);
    return step;
}

static step_t reduction_read(fake_program_t *p, const descriptor_t *op)
{
    const cudnnReduceTensorOp_t mode =
        *(const cudnnReduceTensorOp_t *)fake_dnn_value(
            fake_dnn_child(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC),
            CUDNN_ATTR_REDUCTION_OPERATOR);

    return (step_t){.letter = mode == CUDNN_REDUCE_TENSOR_MAX   ? 'M'
                              : mode == CUDNN_REDUCE_TENSOR_ADD ? '+'
                                                                : '?',
                    .x = tensor_of(p, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
                    .b = -1,
                    .t = -1,
                    .y =
                        tensor_of(p, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC)};
}

static step_t step_read(fake_program_t *p, const descriptor_t *op)
{
    switch (op->type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise_read(p, op);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduction_read(p, op);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return (step_t){
            .letter = 'm',
            .x = tensor_of(p, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
            .b = tensor_of(p, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
            .t = -1,
            .y = tensor_of(p, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC)};
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return (step_t){
            .letter = 'v',
            .x = tensor_of(p, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
            .b = -1,
            .t = -1,
            .y = tensor_of(p, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC)};
    default:
        return (step_t){.letter = '?'};
    }
}

static bool matches(const char *letters, const char *pattern)
{
    regex_t regex;
    bool same;

    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    same = regexec(&regex, letters, 0, NULL, 0) == 0;
    regfree(&regex);
    return same;
}

/* Read [graph] into [p]. Returns false if it is no attention. */
static bool program_read(const descriptor_t *graph, fake_program_t *p)
{
    const attribute_t *ops =
        fake_dnn_find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    char letters[FAKE_STEPS + 1] = "";
    bool backward;

    *p = (fake_program_t){0};
    if (ops->count > FAKE_STEPS)
        return false;
    for (int64_t i = 0; i < ops->count; i++) {
        p->steps[i] = step_read(p, ((const descriptor_t *const *)ops->data)[i]);
        letters[i] = p->steps[i].letter;
        p->step_count++;
    }
    backward = matches(letters, BACKWARD);
    if (!backward && !matches(letters, FORWARD))
        return false;
    for (int i = 0; i < p->step_count; i++)
        if (p->steps[i].letter == 'm' && backward && p->workspace == 0) {
            const int64_t *scores = p->tensors[p->steps[i].y].dims;

            p->workspace = 2 * scores[0] * scores[1] * scores[2] * scores[3];
        }
    return true;
}

bool fake_attention_fits(const descriptor_t *graph)
{
    fake_program_t program;

    if (!program_read(graph, &program))
        return false;
    for (int i = 0; i < program.tensor_count; i++)
        if (!program.inner[i] && !program.number[i] &&
            program.tensors[i].strides[3] == 1 &&
            program.tensors[i].dims[3] > FEATURES_MAX)
            return false;
    return true;
}

fake_program_t *fake_attention_make(const descriptor_t *graph)
{
    fake_program_t *program = calloc(1, sizeof *program);

    if (program == NULL)
        return NULL;
    program_read(graph, program);
    for (int i = 0; i < program->tensor_count; i++) {
        fake_tensor_t *tensor = &program->tensors[i];

        if (!program->inner[i])
            continue;
        tensor->numbers.at = malloc(fake_tensor_bytes(tensor));
        if (tensor->numbers.at == NULL) {
            fake_attention_free(program);
            return NULL;
        }
    }
    return program;
}

void fake_attention_free(fake_program_t *program)
{
    if (program == NULL)
        return;
    program->next = freed;
    freed = program;
}

void fake_attention_reset(void)
{
    while (freed != NULL) {
        fake_program_t *program = freed;

        freed = program->next;
        for (int i = 0; i < program->tensor_count; i++)
            if (program->inner[i])
                free(program->tensors[i].numbers.at);
        free(program);
    }
}

int64_t fake_attention_workspace(const fake_program_t *program)
{
    return program->workspace;
}

/* ---- loops --------------------------------------------------------------- */

typedef struct call {
    const fake_program_t *program;
    void *at[FAKE_STEP_TENSORS];
    float numbers[FAKE_STEP_TENSORS]; /* tensors that are passed by value */
    void *workspace;
    int64_t workspace_bytes;
} call_t;

/* The offset of [place] in [tensor]. Where a dimension of [tensor] is smaller
 * than that of [dims], its elements are repeated. */
static int64_t offset(const fake_tensor_t *tensor, const int64_t place[DIMS],
                      const int64_t dims[DIMS])
{
    int64_t at = 0;

    for (int i = 0; i < DIMS; i++)
        at += (tensor->dims[i] == dims[i]
                   ? place[i]
                   : place[i] * tensor->dims[i] / dims[i]) *
              tensor->strides[i];
    return at;
}

static double get(const call_t *call, int i, const int64_t place[DIMS],
                  const int64_t dims[DIMS])
{
    const fake_tensor_t *tensor = &call->program->tensors[i];
    fake_numbers_t numbers = tensor->numbers;

    if (call->program->number[i])
        return (double)call->numbers[i];
    numbers.at = call->at[i];
    return (double)fake_load(&numbers, offset(tensor, place, dims));
}

static void put(const call_t *call, int i, const int64_t place[DIMS],
                double value)
{
    const fake_tensor_t *tensor = &call->program->tensors[i];
    fake_numbers_t numbers = tensor->numbers;

    numbers.at = call->at[i];
    fake_store(&numbers, offset(tensor, place, tensor->dims), value);
}

static bool next(int64_t place[DIMS], const int64_t dims[DIMS])
{
    for (int i = DIMS - 1; i >= 0; i--) {
        if (++place[i] < dims[i])
            return true;
        place[i] = 0;
    }
    return false;
}

static double product_at(const call_t *call, const step_t *step,
                         const int64_t y[DIMS], const int64_t *dims)
{
    const int64_t inner = call->program->tensors[step->x].dims[3];
    const int64_t a_dims[DIMS] = {dims[0], dims[1], dims[2], inner};
    const int64_t b_dims[DIMS] = {dims[0], dims[1], inner, dims[3]};
    double sum = 0;

    for (int64_t k = 0; k < inner; k++)
        sum += get(call, step->x, (int64_t[]){y[0], y[1], y[2], k}, a_dims) *
               get(call, step->b, (int64_t[]){y[0], y[1], k, y[3]}, b_dims);
    return sum;
}

static double reduced_at(const call_t *call, const step_t *step,
                         const int64_t y[DIMS], const int64_t *dims)
{
    const int64_t *all = call->program->tensors[step->x].dims;
    int64_t each[DIMS], place[DIMS] = {0};
    double result = step->letter == 'M' ? -INFINITY : 0;

    for (int i = 0; i < DIMS; i++)
        each[i] = all[i] / dims[i];
    do {
        int64_t from[DIMS];
        double value;

        for (int i = 0; i < DIMS; i++)
            from[i] = y[i] * each[i] + place[i];
        value = get(call, step->x, from, all);
        if (step->letter == '+')
            result += value;
        else if (!(value <= result))
            result = value; /* a NaN must stay NaN */
    } while (next(place, each));
    return result;
}

static double curve_at(const call_t *call, const step_t *step,
                       const int64_t y[DIMS], const int64_t *dims)
{
    const double x = step->letter == 'i' ? 0 : get(call, step->x, y, dims);
    const double b = step->b < 0 ? 0 : get(call, step->b, y, dims);

    switch (step->letter) {
    case '*':
        return x * b;
    case '-':
        return x - b;
    case 'a':
        return x + b;
    case '/':
        return x / b;
    case 'e':
        return exp(x);
    case 'l':
        return log(x);
    case 'i':
        return (double)y[step->axis];
    case '>':
        return x >= b;
    default: /* select */
        return get(call, step->t, y, dims) != 0 ? x : b;
    }
}

/* A reshape copies nothing: it gives the same memory other dimensions. */
static void reshape(const call_t *call, const step_t *step)
{
    const fake_tensor_t *to = &call->program->tensors[step->y];
    fake_numbers_t from = call->program->tensors[step->x].numbers;
    fake_numbers_t into = to->numbers;
    const int64_t count =
        (int64_t)fake_tensor_bytes(to) / (to->numbers.bf16 ? 2 : 4);

    from.at = call->at[step->x];
    into.at = call->at[step->y];
    for (int64_t i = 0; i < count; i++)
        fake_store(&into, i, (double)fake_load(&from, i));
}

static void step_run(const call_t *call, const step_t *step)
{
    const int64_t *dims = call->program->tensors[step->y].dims;
    int64_t y[DIMS] = {0};

    if (step->letter == 'v') {
        reshape(call, step);
        return;
    }
    do {
        if (step->letter == 'm')
            put(call, step->y, y, product_at(call, step, y, dims));
        else if (step->letter == '+' || step->letter == 'M')
            put(call, step->y, y, reduced_at(call, step, y, dims));
        else
            put(call, step->y, y, curve_at(call, step, y, dims));
    } while (next(y, dims));
}

static cudaError_t call_run(const void *args)
{
    const call_t *call = args;

    if (call->workspace != NULL)
        memset(call->workspace, 0xff, (size_t)call->workspace_bytes);
    for (int i = 0; i < call->program->step_count; i++)
        step_run(call, &call->program->steps[i]);
    return cudaSuccess;
}

/* ---- running ------------------------------------------------------------- */

/* Take the address of tensor [i]. If it is passed by value, read its value. */
static cudnnStatus_t call_fill(call_t *call, int i, const descriptor_t *pack)
{
    const fake_program_t *p = call->program;
    const fake_tensor_t *tensor = &p->tensors[i];

    call->at[i] =
        p->inner[i] ? tensor->numbers.at : fake_dnn_address(pack, tensor);
    if (p->inner[i])
        return CUDNN_STATUS_SUCCESS;
    if (p->number[i] && call->at[i] != NULL) {
        call->numbers[i] = *(const float *)call->at[i];
        return CUDNN_STATUS_SUCCESS;
    }
    return fake_dnn_tensor_check(tensor, call->at[i]);
}

cudnnStatus_t fake_attention_run(const fake_program_t *program,
                                 const descriptor_t *pack, cudaStream_t stream)
{
    call_t call = {.program = program, .workspace_bytes = program->workspace};
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    for (int i = 0; i < program->tensor_count; i++)
        if (status == CUDNN_STATUS_SUCCESS)
            status = call_fill(&call, i, pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = fake_dnn_workspace(pack, program->workspace, &call.workspace);
    if (status == CUDNN_STATUS_SUCCESS &&
        fake_push(stream, call_run, &call, sizeof call) != cudaSuccess)
        status = fake_dnn_complain(CUDNN_STATUS_EXECUTION_FAILED,
                                   "attention of steps", program->step_count);
    return status;
}
