// SPDX-License-Identifier: Apache-2.0
/* A module with thread-locals, initialised and not. Built twice: linked with the test program, which gives it a
 * place in the static block, and opened later. */
#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)

struct tls_variables {
    int seven;       /* initially 7 */
    int zero;        /* initially 0 */
    char room[2048]; /* too much for what libc keeps free in the static block for modules opened later */
};

static __thread struct tls_variables variables = {.seven = 7};

struct tls_variables *JOIN(TLS_MODULE, variables)(void);
struct tls_variables *JOIN(TLS_MODULE, variables)(void) {
    return &variables;
}
