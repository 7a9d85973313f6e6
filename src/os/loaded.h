// SPDX-License-Identifier: Apache-2.0
/* Libraries that the program may have loaded by dlopen for itself alone (RTLD_LOCAL): a weak reference and
 * dlsym(RTLD_DEFAULT) do not see those. */
#ifndef THRUM_OS_LOADED_H
#define THRUM_OS_LOADED_H

/* The library's `symbol`, NULL if the process has not loaded it. `library`: the name that it has in itself, as
 * "libstdc++.so.6". It then stays loaded. Nothing is loaded, and no file looked at. */
void *loaded_symbol(const char *library, const char *symbol);

#endif
