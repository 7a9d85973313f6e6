// SPDX-License-Identifier: Apache-2.0
/* Configurations of schedulers and of pools, which are the same: values of three types by number. And definitions of pools. */
#include <stdarg.h>
#include <stdlib.h>

#include "layer.h"

ABT_EXPORT ABT_sched_config_var ABT_sched_config_var_end = {-1, ABT_SCHED_CONFIG_INT};
ABT_EXPORT ABT_sched_config_var ABT_sched_config_access = {-2, ABT_SCHED_CONFIG_INT};
ABT_EXPORT ABT_sched_config_var ABT_sched_config_automatic = {-3, ABT_SCHED_CONFIG_INT};
ABT_EXPORT ABT_sched_config_var ABT_sched_basic_freq = {-4, ABT_SCHED_CONFIG_INT};
ABT_EXPORT const ABT_pool_config_var ABT_pool_config_automatic = {-2, ABT_POOL_CONFIG_INT};

_Static_assert((int)ABT_SCHED_CONFIG_INT == (int)ABT_POOL_CONFIG_INT &&
                   (int)ABT_SCHED_CONFIG_DOUBLE == (int)ABT_POOL_CONFIG_DOUBLE &&
                   (int)ABT_SCHED_CONFIG_PTR == (int)ABT_POOL_CONFIG_PTR,
               "one table for both");

struct value {
    struct value *next;
    int index, type;
    union {
        int number;
        double real;
        void *pointer;
    };
};

struct config {
    struct value *first;
};

static struct config *config_of(const void *handle) {
    return (struct config *)(uintptr_t)handle;
}

static struct value **place_of(struct config *config, int index) {
    struct value **place = &config->first;
    while (*place != NULL && (*place)->index != index)
        place = &(*place)->next;
    return place;
}

static bool is_type(int type) {
    return type == ABT_SCHED_CONFIG_INT || type == ABT_SCHED_CONFIG_DOUBLE || type == ABT_SCHED_CONFIG_PTR;
}

static void copy_in(struct value *value, const void *from) {
    switch (value->type) {
    case ABT_SCHED_CONFIG_INT: value->number = *(const int *)from; break;
    case ABT_SCHED_CONFIG_DOUBLE: value->real = *(const double *)from; break;
    default: value->pointer = *(void *const *)from; break;
    }
}

static void copy_out(const struct value *value, void *to) {
    switch (value->type) {
    case ABT_SCHED_CONFIG_INT: *(int *)to = value->number; break;
    case ABT_SCHED_CONFIG_DOUBLE: *(double *)to = value->real; break;
    default: *(void **)to = value->pointer; break;
    }
}

/* NULL takes the value away. */
static int set(struct config *config, int index, int type, const void *from) {
    struct value **place = place_of(config, index), *value = *place;
    if (from == NULL) {
        if (value != NULL)
            *place = value->next;
        free(value);
        return ABT_SUCCESS;
    }
    ABT_CHECK(is_type(type), ABT_ERR_INV_ARG);
    if (value == NULL) {
        value = calloc(1, sizeof *value);
        ABT_CHECK(value != NULL, ABT_ERR_MEM);
        value->index = index;
        *place = value;
    }
    value->type = type;
    copy_in(value, from);
    return ABT_SUCCESS;
}

bool abt_config_get(ABT_sched_config handle, int index, int *type, void *to) {
    const struct value *value = *place_of(config_of(handle), index);
    if (value == NULL)
        return false;
    if (type != NULL)
        *type = value->type;
    if (to != NULL)
        copy_out(value, to);
    return true;
}

static void delete (struct config *config) {
    while (config->first != NULL) {
        struct value *value = config->first;
        config->first = value->next;
        free(value);
    }
    free(config);
}

/* --- of schedulers ------------------------------------------------------------------------------------- */

static int set_next(struct config *config, ABT_sched_config_var var, va_list *list) {
    int number;
    double real;
    void *pointer;
    switch (var.type) {
    case ABT_SCHED_CONFIG_INT: number = va_arg(*list, int); return set(config, var.idx, var.type, &number);
    case ABT_SCHED_CONFIG_DOUBLE: real = va_arg(*list, double); return set(config, var.idx, var.type, &real);
    case ABT_SCHED_CONFIG_PTR:
        pointer = va_arg(*list, void *);
        return set(config, var.idx, var.type, &pointer);
    }
    return ABT_ERR_INV_ARG;
}

ABT_EXPORT int ABT_sched_config_create(ABT_sched_config *result, ...) {
    *result = ABT_SCHED_CONFIG_NULL;
    struct config *config = calloc(1, sizeof *config);
    ABT_CHECK(config != NULL, ABT_ERR_MEM);
    va_list list;
    va_start(list, result);
    int error = ABT_SUCCESS;
    while (error == ABT_SUCCESS) {
        ABT_sched_config_var var = va_arg(list, ABT_sched_config_var);
        if (var.idx == ABT_sched_config_var_end.idx)
            break;
        error = set_next(config, var, &list);
    }
    va_end(list);
    if (error != ABT_SUCCESS) {
        delete (config);
        return error;
    }
    *result = (ABT_sched_config)(void *)config;
    return ABT_SUCCESS;
}

/* Of those that are not there, and where the pointer is NULL, nothing is written. */
ABT_EXPORT int ABT_sched_config_read(ABT_sched_config config, int num_vars, ...) {
    ABT_CHECK_HANDLE(config, ABT_ERR_INV_SCHED_CONFIG);
    ABT_CHECK(num_vars >= 0, ABT_ERR_INV_ARG);
    va_list list;
    va_start(list, num_vars);
    for (int i = 0; i < num_vars; i++)
        abt_config_get(config, i, NULL, va_arg(list, void *));
    va_end(list);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_config_free(ABT_sched_config *config) {
    ABT_CHECK_HANDLE(*config, ABT_ERR_INV_SCHED_CONFIG);
    delete (config_of(*config));
    *config = ABT_SCHED_CONFIG_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_config_set(ABT_sched_config config, int idx, ABT_sched_config_type type,
                                    const void *val) {
    ABT_CHECK_HANDLE(config, ABT_ERR_INV_SCHED_CONFIG);
    ABT_CHECK(is_type((int)type), ABT_ERR_INV_ARG);
    return set(config_of(config), idx, (int)type, val);
}

ABT_EXPORT int ABT_sched_config_get(ABT_sched_config config, int idx, ABT_sched_config_type *p_type,
                                    void *val) {
    ABT_CHECK_HANDLE(config, ABT_ERR_INV_SCHED_CONFIG);
    int type;
    ABT_CHECK(abt_config_get(config, idx, &type, val), ABT_ERR_INV_ARG);
    if (p_type != NULL)
        *p_type = (ABT_sched_config_type)type;
    return ABT_SUCCESS;
}

/* --- of pools ------------------------------------------------------------------------------------------ */

ABT_EXPORT int ABT_pool_config_create(ABT_pool_config *result) {
    struct config *config = calloc(1, sizeof *config);
    *result = ABT_POOL_CONFIG_NULL;
    ABT_CHECK(config != NULL, ABT_ERR_MEM);
    *result = (ABT_pool_config)(void *)config;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_config_free(ABT_pool_config *config) {
    ABT_CHECK_HANDLE(*config, ABT_ERR_INV_POOL_CONFIG);
    delete (config_of(*config));
    *config = ABT_POOL_CONFIG_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_config_set(ABT_pool_config config, int key, ABT_pool_config_type type,
                                   const void *val) {
    ABT_CHECK_HANDLE(config, ABT_ERR_INV_POOL_CONFIG);
    ABT_CHECK(is_type((int)type), ABT_ERR_INV_ARG);
    return set(config_of(config), key, (int)type, val);
}

ABT_EXPORT int ABT_pool_config_get(ABT_pool_config config, int key, ABT_pool_config_type *p_type, void *val) {
    ABT_CHECK_HANDLE(config, ABT_ERR_INV_POOL_CONFIG);
    int type;
    ABT_CHECK(abt_config_get((ABT_sched_config)(void *)config, key, &type, val), ABT_ERR_INV_ARG);
    if (p_type != NULL)
        *p_type = (ABT_pool_config_type)type;
    return ABT_SUCCESS;
}

/* --- definitions of pools ------------------------------------------------------------------------------ */

/* NULL: none, or one of the older form, whose fields the program sets itself. */
static struct abt_user_def *def_of(ABT_pool_user_def def) {
    return abt_is_null(def) || def->u_create_from_thread != NULL ? NULL : (struct abt_user_def *)(void *)def;
}

ABT_EXPORT int ABT_pool_user_def_create(ABT_pool_user_create_unit_fn p_create_unit,
                                        ABT_pool_user_free_unit_fn p_free_unit,
                                        ABT_pool_user_is_empty_fn p_is_empty, ABT_pool_user_pop_fn p_pop,
                                        ABT_pool_user_push_fn p_push, ABT_pool_user_def *newdef) {
    struct abt_user_def *def = calloc(1, sizeof *def);
    *newdef = ABT_POOL_USER_DEF_NULL;
    ABT_CHECK(def != NULL, ABT_ERR_MEM);
    def->create_unit = p_create_unit;
    def->free_unit = p_free_unit;
    def->is_empty = p_is_empty;
    def->pop = p_pop;
    def->push = p_push;
    *newdef = (ABT_pool_user_def)(void *)def;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_user_def_free(ABT_pool_user_def *def) {
    ABT_CHECK(def_of(*def) != NULL, ABT_ERR_INV_POOL_USER_DEF);
    free(def_of(*def));
    *def = ABT_POOL_USER_DEF_NULL;
    return ABT_SUCCESS;
}

#define SET(name, type)                                                                                      \
    ABT_EXPORT int ABT_pool_user_def_set_##name(ABT_pool_user_def def, ABT_pool_user_##type##_fn function) { \
        ABT_CHECK(def_of(def) != NULL, ABT_ERR_INV_POOL_USER_DEF);                                           \
        def_of(def)->name = function;                                                                        \
        return ABT_SUCCESS;                                                                                  \
    }

SET(init, init)
SET(free, free)
SET(get_size, get_size)
SET(pop_wait, pop_wait)
SET(pop_many, pop_many)
SET(push_many, push_many)
SET(print_all, print_all)
