// SPDX-License-Identifier: Apache-2.0
//
// A module for deepbind.c: what it calls it finds in libc, past preloaded libraries.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

int module_join(pthread_t thread, void **result);
int module_kill(pthread_t thread);
int module_slack(unsigned long ns);

int module_join(pthread_t thread, void **result) {
    return pthread_join(thread, result);
}
int module_kill(pthread_t thread) {
    return pthread_kill(thread, 0);
}
int module_slack(unsigned long ns) {
    return prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0);
}
