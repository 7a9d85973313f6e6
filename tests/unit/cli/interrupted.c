// SPDX-License-Identifier: Apache-2.0
//
// What the test of stat/interrupted.c looks at, on x86-64: calls that a signal with SA_RESTART breaks off. For each of them a thread
// is seen in it, gets the signal, and either returns with EINTR or is seen in it again; then it is given what it waits for.
// With "bare" the signal's handler does nothing.
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "stat/interrupted.h"
#include "waiting.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

enum { FULL = 1 << 16 };
static bool bare;
static _Atomic int handled;
static _Atomic bool done;
static _Atomic pid_t worker;
static pthread_t thread;
static long result; // of the call: -errno on failure

static void on_tick(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    if (!bare)
        interrupted_again_sigsafe(context);
    handled++;
}

static void do_nothing(int number) {
    (void)number;
}

static void must(bool is) {
    if (!is)
        abort();
}

// --- what is waited for ----------------------------------------------------------------------------------

static int channel[2], events, sockets[2], listener, semaphores, messages, file, ring;
static struct sockaddr_un name = {AF_UNIX, ""};
static sem_t semaphore;
static aio_context_t context;
static char block[FULL];
static struct iovec vector = {block, 1};
static struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
static struct {
    long type;
    char text[8192 - 64];
} message = {1, ""};
static const struct timespec long_time = {1000, 0}, second = {1, 0};

static void limit(int fd) {
    const struct timeval time = {1000, 0};
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0 &&
         setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0);
}

static void make_channel(void) {
    struct epoll_event wanted = {.events = EPOLLIN};
    must(pipe(channel) == 0 && (events = epoll_create1(0)) >= 0 &&
         epoll_ctl(events, EPOLL_CTL_ADD, channel[0], &wanted) == 0);
}

static void write_channel(void) {
    must(write(channel[1], "x", 1) == 1);
}

static void make_sockets(void) {
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    limit(sockets[0]);
}

static void write_socket(void) {
    must(write(sockets[1], "x", 1) == 1);
}

static void fill_socket(void) {
    make_sockets();
    while (send(sockets[0], block, sizeof block, MSG_DONTWAIT) > 0)
        continue;
}

static void empty_socket(void) {
    static char read_here[FULL];
    while (!done)
        if (recv(sockets[1], read_here, sizeof read_here, MSG_DONTWAIT) < 0)
            sched_yield();
}

static int connect_one(void) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
    return fd;
}

static void make_listener(void) {
    static unsigned turn;
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "interrupted-%d-%u", getpid(), turn++);
    must((listener = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0 &&
         bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 0) == 0);
    limit(listener);
}

static void connect_to_it(void) {
    connect_one();
}

static void fill_listener(void) {
    make_listener();
    connect_one();
    must((sockets[0] = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
    limit(sockets[0]);
}

static void accept_one(void) {
    must(accept(listener, NULL, NULL) >= 0);
}

static void make_semaphores(void) {
    must((semaphores = semget(IPC_PRIVATE, 1, 0600)) >= 0);
}

static void change_semaphore(void) {
    struct sembuf up = {0, 1, 0};
    must(semop(semaphores, &up, 1) == 0);
}

static void drop_semaphores(void) {
    semctl(semaphores, 0, IPC_RMID);
}

static void make_messages(void) {
    must((messages = msgget(IPC_PRIVATE, 0600)) >= 0);
}

static void send_message(void) {
    must(msgsnd(messages, &message, 1, 0) == 0);
}

static void fill_messages(void) {
    make_messages();
    while (msgsnd(messages, &message, sizeof message.text, IPC_NOWAIT) == 0)
        continue;
}

static void take_message(void) {
    static char here[sizeof message];
    must(msgrcv(messages, here, sizeof message.text, 0, 0) >= 0);
}

static void drop_messages(void) {
    msgctl(messages, IPC_RMID, NULL);
}

static void make_semaphore(void) {
    must(sem_init(&semaphore, 0, 0) == 0);
}

static void post(void) {
    sem_post(&semaphore);
}

static void make_context(void) {
    context = 0;
    must(syscall(SYS_io_setup, 1, &context) == 0);
}

static void drop_context(void) {
    syscall(SYS_io_destroy, context);
}

static void make_file(void) {
    fill_socket();
    must((file = open("/proc/self/exe", O_RDONLY)) >= 0);
}

static void make_ring(void) {
    struct io_uring_params parameters = {0};
    must((ring = (int)syscall(SYS_io_uring_setup, 4, &parameters)) >= 0);
}

static void other_signal(void) {
    pthread_kill(thread, SIGUSR2);
}

static void nothing(void) {}

// --- calls -----------------------------------------------------------------------------------------------

static long made(long answer) {
    return answer < 0 ? -errno : answer;
}

static long with_poll(void) {
    struct pollfd one = {channel[0], POLLIN, 0};
    return made(poll(&one, 1, -1));
}

static long with_ppoll(void) {
    struct pollfd one = {channel[0], POLLIN, 0};
    return made(ppoll(&one, 1, &long_time, NULL));
}

static long with_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(channel[0], &set);
    return made(select(channel[0] + 1, &set, NULL, NULL, NULL));
}

static long with_pselect(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(channel[0], &set);
    return made(pselect(channel[0] + 1, &set, NULL, NULL, &long_time, NULL));
}

static long with_epoll_wait(void) {
    struct epoll_event one;
    return made(epoll_wait(events, &one, 1, -1));
}

static long with_epoll_pwait(void) {
    struct epoll_event one;
    return made(epoll_pwait(events, &one, 1, -1, NULL));
}

#if __GLIBC_PREREQ(2, 35)
static long with_epoll_pwait2(void) {
    struct epoll_event one;
    return made(epoll_pwait2(events, &one, 1, &long_time, NULL));
}
#endif

static long with_pause(void) {
    return made(pause());
}

static long with_sigsuspend(void) {
    sigset_t none;
    sigemptyset(&none);
    return made(sigsuspend(&none));
}

static long with_sigtimedwait(void) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    return made(sigtimedwait(&one, NULL, &long_time)) == SIGUSR2 ? 0 : -errno;
}

static long with_nanosleep(void) {
    return made(nanosleep(&second, NULL));
}

static long with_semop(void) {
    struct sembuf down = {0, -1, 0};
    return made(semop(semaphores, &down, 1));
}

static long with_semtimedop(void) {
    struct sembuf down = {0, -1, 0};
    return made(semtimedop(semaphores, &down, 1, &long_time));
}

static long with_msgrcv(void) {
    static char here[sizeof message];
    return made(msgrcv(messages, here, sizeof message.text, 0, 0));
}

static long with_msgsnd(void) {
    return made(msgsnd(messages, &message, sizeof message.text, 0));
}

static long with_sem_timedwait(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 100000;
    return made(sem_timedwait(&semaphore, &until));
}

// As libaio makes it. Nothing comes; it ends when the context does.
static long with_io_getevents(void) {
    static struct io_event one;
    long answer = 0;
    register const struct timespec *time __asm__("r8") = &long_time;
    register struct io_event *to __asm__("r10") = &one;
    __asm__ volatile("movl %1, %%eax\n\tsyscall"
                     : "=a"(answer)
                     : "i"(SYS_io_getevents), "D"(context), "S"(1L), "d"(1L), "r"(to), "r"(time)
                     : "rcx", "r11", "memory");
    return answer;
}

// As liburing makes it; nothing was submitted.
static long with_io_uring_enter(void) {
    long answer = 0;
    register long flags __asm__("r10") = IORING_ENTER_GETEVENTS;
    register void *mask __asm__("r8") = NULL;
    register long size __asm__("r9") = 8;
    __asm__ volatile("movl %1, %%eax\n\tsyscall"
                     : "=a"(answer)
                     : "i"(SYS_io_uring_enter), "D"(ring), "S"(0L), "d"(1L), "r"(flags), "r"(mask), "r"(size)
                     : "rcx", "r11", "memory");
    return answer;
}

static long with_recv(void) {
    return made(recv(sockets[0], block, 1, 0));
}

static long with_recvfrom(void) {
    struct sockaddr_un from;
    socklen_t size = sizeof from;
    return made(recvfrom(sockets[0], block, 1, 0, (struct sockaddr *)&from, &size));
}

static long with_recvmsg(void) {
    return made(recvmsg(sockets[0], &header, 0));
}

static long with_recvmmsg(void) {
    struct mmsghdr one = {header, 0};
    return made(recvmmsg(sockets[0], &one, 1, 0, NULL));
}

static long with_read(void) {
    return made(read(sockets[0], block, 1));
}

static long with_readv(void) {
    return made(readv(sockets[0], &vector, 1));
}

static long with_splice(void) {
    return made(splice(sockets[0], NULL, channel[1], NULL, 1, 0));
}

static long with_send(void) {
    return made(send(sockets[0], block, 1, 0));
}

static long with_sendmsg(void) {
    return made(sendmsg(sockets[0], &header, 0));
}

static long with_sendmmsg(void) {
    struct mmsghdr one = {header, 0};
    return made(sendmmsg(sockets[0], &one, 1, 0));
}

static long with_write(void) {
    return made(write(sockets[0], block, 1));
}

static long with_writev(void) {
    return made(writev(sockets[0], &vector, 1));
}

static long with_sendfile(void) {
    off_t at = 0;
    return made(sendfile(sockets[0], file, &at, 1));
}

static long with_accept(void) {
    return made(accept(listener, NULL, NULL));
}

static long with_accept4(void) {
    return made(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

static long with_connect(void) {
    return made(connect(sockets[0], (struct sockaddr *)&name, sizeof name));
}

static void make_both(void) {
    make_channel();
    make_sockets();
}

static const struct one {
    const char *name;
    long number; // of the system call that it is seen in
    void (*prepare)(void);
    long (*call)(void);
    void (*satisfy)(void), (*clean)(void);
} all[] = {
    {"poll", SYS_poll, make_channel, with_poll, write_channel, nothing},
    {"ppoll", SYS_ppoll, make_channel, with_ppoll, write_channel, nothing},
    {"select", SYS_pselect6, make_channel, with_select, write_channel, nothing},
    {"pselect", SYS_pselect6, make_channel, with_pselect, write_channel, nothing},
    {"epoll_wait", SYS_epoll_wait, make_channel, with_epoll_wait, write_channel, nothing},
    {"epoll_pwait", SYS_epoll_pwait, make_channel, with_epoll_pwait, write_channel, nothing},
#if __GLIBC_PREREQ(2, 35)
    {"epoll_pwait2", SYS_epoll_pwait2, make_channel, with_epoll_pwait2, write_channel, nothing},
#endif
    {"pause", SYS_pause, nothing, with_pause, other_signal, nothing},
    {"sigsuspend", SYS_rt_sigsuspend, nothing, with_sigsuspend, other_signal, nothing},
    {"sigtimedwait", SYS_rt_sigtimedwait, nothing, with_sigtimedwait, other_signal, nothing},
    {"nanosleep", SYS_clock_nanosleep, nothing, with_nanosleep, nothing, nothing},
    {"semop", SYS_semtimedop, make_semaphores, with_semop, change_semaphore, drop_semaphores},
    {"semtimedop", SYS_semtimedop, make_semaphores, with_semtimedop, change_semaphore, drop_semaphores},
    {"msgrcv", SYS_msgrcv, make_messages, with_msgrcv, send_message, drop_messages},
    {"msgsnd", SYS_msgsnd, fill_messages, with_msgsnd, take_message, drop_messages},
    {"sem_timedwait", SYS_futex, make_semaphore, with_sem_timedwait, post, nothing},
    {"io_getevents", SYS_io_getevents, make_context, with_io_getevents, drop_context, nothing},
    {"io_uring_enter", SYS_io_uring_enter, make_ring, with_io_uring_enter, other_signal, nothing},
    {"recv", SYS_recvfrom, make_sockets, with_recv, write_socket, nothing},
    {"recvfrom", SYS_recvfrom, make_sockets, with_recvfrom, write_socket, nothing},
    {"recvmsg", SYS_recvmsg, make_sockets, with_recvmsg, write_socket, nothing},
    {"recvmmsg", SYS_recvmmsg, make_sockets, with_recvmmsg, write_socket, nothing},
    {"read", SYS_read, make_sockets, with_read, write_socket, nothing},
    {"readv", SYS_readv, make_sockets, with_readv, write_socket, nothing},
    {"splice", SYS_splice, make_both, with_splice, write_socket, nothing},
    {"send", SYS_sendto, fill_socket, with_send, empty_socket, nothing},
    {"sendmsg", SYS_sendmsg, fill_socket, with_sendmsg, empty_socket, nothing},
    {"sendmmsg", SYS_sendmmsg, fill_socket, with_sendmmsg, empty_socket, nothing},
    {"write", SYS_write, fill_socket, with_write, empty_socket, nothing},
    {"writev", SYS_writev, fill_socket, with_writev, empty_socket, nothing},
    {"sendfile", SYS_sendfile, make_file, with_sendfile, empty_socket, nothing},
    {"accept", SYS_accept, make_listener, with_accept, connect_to_it, nothing},
    {"accept4", SYS_accept4, make_listener, with_accept4, connect_to_it, nothing},
    {"connect", SYS_connect, fill_listener, with_connect, accept_one, nothing},
};

// --- one after the other -----------------------------------------------------------------------------------

static void *work(void *arg) {
    const struct one *one = arg;
    sigset_t other;
    sigemptyset(&other);
    sigaddset(&other, SIGUSR2);
    pthread_sigmask(one->number == SYS_rt_sigtimedwait ? SIG_BLOCK : SIG_UNBLOCK, &other, NULL);
    worker = (pid_t)syscall(SYS_gettid);
    result = one->call();
    done = true;
    return NULL;
}

// False: it has ended before it was seen.
static bool until_in_or_done(long number) {
    while (!done)
        if (worker != 0 && is_in(worker, number))
            return true;
    return false;
}

static bool break_off(struct one *one) {
    one->prepare();
    worker = 0;
    handled = 0;
    done = false;
    must(pthread_create(&thread, NULL, work, one) == 0);
    const bool seen = until_in_or_done(one->number);
    if (seen) {
        pthread_kill(thread, SIGUSR1);
        while (handled == 0)
            sched_yield();
        until_in_or_done(one->number);
        printf("%s: %s\n", one->name, done && result == -EINTR ? "broken off" : "goes on");
    }
    if (!done)
        one->satisfy();
    pthread_join(thread, NULL);
    one->clean();
    return seen;
}

static bool has_rings(void) {
    struct io_uring_params parameters = {0};
    return syscall(SYS_io_uring_setup, 4, &parameters) >= 0;
}

int main(int argc, char **argv) {
    bare = argc > 1 && strcmp(argv[1], "bare") == 0;
    struct sigaction tick = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction other = {.sa_handler = do_nothing};
    sigfillset(&tick.sa_mask);
    sigaction(SIGUSR1, &tick, NULL);
    sigaction(SIGUSR2, &other, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct one one = all[i];
        if (one.number == SYS_io_uring_enter && !has_rings()) // which some systems forbid
            continue;
        while (!break_off(&one))
            continue;
    }
    return 0;
}
