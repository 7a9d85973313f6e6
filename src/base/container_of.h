// SPDX-License-Identifier: Apache-2.0
/* From a member to the struct that it is in. */
#ifndef THRUM_BASE_CONTAINER_OF_H
#define THRUM_BASE_CONTAINER_OF_H

#include <stddef.h>

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
