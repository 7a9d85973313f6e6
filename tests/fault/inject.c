// SPDX-License-Identifier: Apache-2.0
//
// Starts a program in which system calls of one kind fail now and then, decided from outside of it (seccomp user
// notification), so that libc's own calls are hit as well as the cache's. Used by run-fault.sh.
//
//   inject clone|stack|memory|futex EVERY PROGRAM ARGS...
//
//   clone   clone and clone3 fail with EAGAIN
//   stack   mmap of a thread's stack fails with ENOMEM
//   memory  every anonymous mmap fails with ENOMEM
//   futex   waits end with EINTR, as by a signal
//
// One call of EVERY fails, from the moment at which the program asks for it by getpriority(INJECT_ON, 0) until
// getpriority(INJECT_OFF, 0). The exit code is the program's, 128 + N for a signal.
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject.h"

enum kind { CLONE, STACK, MEMORY, FUTEX };

static void fail(const char *what) {
    fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
    exit(INJECT_CANNOT);
}

// ---- in the program's process ---------------------------------------------------------------------------------------

#define LOAD(field)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ASK                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
#define ALLOW               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define IF_NOT(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))

// Which calls the outside is asked about: getpriority, and those of the kind.
static int install_filter(enum kind kind) {
    struct sock_filter clone_filter[] = {LOAD(nr), IF_NOT(SYS_getpriority, 1), ASK, IF_NOT(SYS_clone, 1),
                                         ASK,      IF_NOT(SYS_clone3, 1),      ASK, ALLOW};
    struct sock_filter mmap_filter[] = {
        LOAD(nr),      IF_NOT(SYS_getpriority, 1),
        ASK,           IF_NOT(SYS_mmap, 3),
        LOAD(args[3]), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
        ASK,           ALLOW};
    struct sock_filter futex_filter[] = {LOAD(nr),
                                         IF_NOT(SYS_getpriority, 1),
                                         ASK,
                                         IF_NOT(SYS_futex, 6),
                                         LOAD(args[1]),
                                         BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FUTEX_CMD_MASK),
                                         IF_NOT(FUTEX_WAIT, 1),
                                         ASK,
                                         IF_NOT(FUTEX_WAIT_BITSET, 1),
                                         ASK,
                                         ALLOW};
    struct sock_fprog program = {sizeof mmap_filter / sizeof mmap_filter[0], mmap_filter};
    if (kind == CLONE)
        program = (struct sock_fprog){sizeof clone_filter / sizeof clone_filter[0], clone_filter};
    if (kind == FUTEX)
        program = (struct sock_fprog){sizeof futex_filter / sizeof futex_filter[0], futex_filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
        fail("no_new_privs");
    int listener =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener == -1)
        fail("seccomp with a listener");
    return listener;
}

struct fd_message {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec vector;
    struct msghdr header;
};
static void prepare(struct fd_message *m) {
    memset(m, 0, sizeof *m);
    m->vector = (struct iovec){&m->byte, 1};
    m->header = (struct msghdr){.msg_iov = &m->vector,
                                .msg_iovlen = 1,
                                .msg_control = m->control,
                                .msg_controllen = sizeof m->control};
}
static void send_fd(int socket, int fd) {
    struct fd_message m;
    prepare(&m);
    struct cmsghdr *control = CMSG_FIRSTHDR(&m.header);
    *control = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    if (sendmsg(socket, &m.header, 0) != 1)
        fail("sendmsg");
}
static int receive_fd(int socket) {
    struct fd_message m;
    int fd;
    prepare(&m);
    if (recvmsg(socket, &m.header, MSG_CMSG_CLOEXEC) != 1)
        exit(INJECT_CANNOT); // the other side said why
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m.header)), sizeof fd);
    return fd;
}

// ---- outside --------------------------------------------------------------------------------------------------------

struct fault {
    enum kind kind;
    int every, on, count, calls, failed;
};

// The error for this call, 0 to let it happen.
static int decide(struct fault *fault, const struct seccomp_data *call) {
    if (call->nr == SYS_getpriority) {
        if (call->args[0] == INJECT_ON)
            fault->on = 1, fault->count = 0; // the same ones fail after each beginning
        if (call->args[0] == INJECT_OFF)
            fault->on = 0;
        return 0;
    }
    if (!fault->on || (fault->kind == STACK && !(call->args[3] & MAP_STACK)))
        return 0;
    fault->calls++;
    if (++fault->count % fault->every != 0)
        return 0;
    fault->failed++;
    static const int errors[] = {[CLONE] = EAGAIN, [STACK] = ENOMEM, [MEMORY] = ENOMEM, [FUTEX] = EINTR};
    return errors[fault->kind];
}

// Until all that have the filter are gone.
static void answer(struct fault *fault, int listener) {
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    while (poll(&waiting, 1, -1) == 1 && (waiting.revents & POLLIN)) {
        struct seccomp_notif asked;
        struct seccomp_notif_resp answer;
        memset(&asked, 0, sizeof asked);
        memset(&answer, 0, sizeof answer);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == -1)
            continue; // interrupted by a signal: asked again
        int error = decide(fault, &asked.data);
        answer.id = asked.id;
        answer.error = -error;
        if (!error)
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

int main(int argc, char **argv) {
    static const char *const kinds[] = {"clone", "stack", "memory", "futex"};
    struct fault fault = {.every = argc > 3 ? atoi(argv[2]) : 0};
    unsigned kind = 0;
    while (kind < 4 && argc > 3 && strcmp(kinds[kind], argv[1]) != 0)
        kind++;
    if (argc < 4 || kind == 4 || fault.every < 1) {
        fprintf(stderr, "usage: inject clone|stack|memory|futex EVERY PROGRAM ARGS...\n");
        return 2;
    }
    fault.kind = (enum kind)kind;

    int ends[2], status;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1)
        fail("socketpair");
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0) {
        close(ends[0]);
        send_fd(ends[1], install_filter(fault.kind));
        execv(argv[3], argv + 3);
        fail(argv[3]);
    }
    close(ends[1]);
    int listener = receive_fd(ends[0]);
    answer(&fault, listener);
    waitpid(pid, &status, 0);
    fprintf(stderr, "inject: %d of %d calls failed\n", fault.failed, fault.calls);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
