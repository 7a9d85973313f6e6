// SPDX-License-Identifier: Apache-2.0
//
// Programs that a ULT starts: they block what the program's own threads block, not what a worker does, however they are
// started. And system() and popen() do what POSIX says of them (runtime/children.c).
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "preempt.hpp"

extern char **environ;

namespace {

uint64_t bits_of(const sigset_t &set) {
    uint64_t bits;
    memcpy(&bits, &set, sizeof bits);
    return bits;
}

sigset_t set_of(std::initializer_list<int> signals) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : signals)
        sigaddset(&set, signal);
    return set;
}

// What a child writes of itself: in hexadecimal, what it blocks.
constexpr const char *kTell = "/bin/sed", *kScript = "s/^SigBlk:\t//p", *kStatus = "/proc/self/status";
constexpr const char *kCommand = "sed -n 's/^SigBlk:\t//p' /proc/self/status";

std::vector<char *> arguments() {
    return {const_cast<char *>("sed"), const_cast<char *>("-n"), const_cast<char *>(kScript),
            const_cast<char *>(kStatus), nullptr};
}

// Runs `start`, whose child's standard output is the descriptor that it is given, and reads a mask from that.
uint64_t mask_of_child(const std::function<void(int)> &start) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    start(ends[1]);
    close(ends[1]);
    char text[64] = "";
    ssize_t length = 0, got;
    while ((got = read(ends[0], text + length, sizeof text - 1 - static_cast<size_t>(length))) > 0)
        length += got;
    close(ends[0]);
    EXPECT_GT(length, 0);
    return std::strtoull(text, nullptr, 16);
}

int status_of(pid_t pid) {
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

using Spawn = int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                      char *const[], char *const[]);

void spawn(Spawn function, int out, const posix_spawnattr_t *attr) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    pid_t pid = 0;
    EXPECT_EQ(function(&pid, kTell, &actions, attr, arguments().data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(status_of(pid), 0);
}

// Its child calls exec, by the means given.
void fork_and(int out, bool shares_memory, const std::function<void()> &exec) {
    const pid_t pid = shares_memory ? vfork() : fork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (pid == 0) {
        dup2(out, 1);
        exec();
        _exit(111);
    }
    EXPECT_EQ(status_of(pid), 0);
}

const struct Way {
    const char *name;
    std::function<void(int)> start;
    bool by_shell = false; // some of which block nothing, whatever they were started with
} ways[] = {
    {"posix_spawn", [](int out) { spawn(posix_spawn, out, nullptr); }},
    {"posix_spawnp", [](int out) { spawn(posix_spawnp, out, nullptr); }},
    {"posix_spawn with attributes",
     [](int out) {
         posix_spawnattr_t attr;
         posix_spawnattr_init(&attr);
         posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
         spawn(posix_spawn, out, &attr);
         posix_spawnattr_destroy(&attr);
     }},
    {"vfork and execv", [](int out) { fork_and(out, true, [] { execv(kTell, arguments().data()); }); }},
    {"vfork and execvp", [](int out) { fork_and(out, true, [] { execvp("sed", arguments().data()); }); }},
    {"vfork and execve",
     [](int out) { fork_and(out, true, [] { execve(kTell, arguments().data(), environ); }); }},
    {"vfork and execvpe",
     [](int out) { fork_and(out, true, [] { execvpe("sed", arguments().data(), environ); }); }},
    {"vfork and execl",
     [](int out) { fork_and(out, true, [] { execl(kTell, "sed", "-n", kScript, kStatus, nullptr); }); }},
    {"vfork and execlp",
     [](int out) { fork_and(out, true, [] { execlp("sed", "sed", "-n", kScript, kStatus, nullptr); }); }},
    {"vfork and execle",
     [](int out) {
         fork_and(out, true, [] { execle(kTell, "sed", "-n", kScript, kStatus, nullptr, environ); });
     }},
    {"vfork and fexecve",
     [](int out) {
         const int fd = open(kTell, O_RDONLY | O_CLOEXEC);
         fork_and(out, true, [fd] { fexecve(fd, arguments().data(), environ); });
         close(fd);
     }},
    {"fork and execv", [](int out) { fork_and(out, false, [] { execv(kTell, arguments().data()); }); }},
    {"_Fork alone",
     [](int out) {
         const pid_t pid = _Fork();
         if (pid == 0) {
             sigset_t set;
             char text[32];
             pthread_sigmask(SIG_BLOCK, nullptr, &set);
             const int length = snprintf(text, sizeof text, "%lx", static_cast<unsigned long>(bits_of(set)));
             _exit(write(out, text, static_cast<size_t>(length)) == length ? 0 : 1);
         }
         EXPECT_EQ(status_of(pid), 0);
     }},
    {"system",
     [](int out) {
         const std::string command = std::string(kCommand) + " >&" + std::to_string(out);
         fcntl(out, F_SETFD, 0);
         EXPECT_EQ(system(command.c_str()), 0);
     },
     true},
    {"popen",
     [](int out) {
         FILE *file = popen(kCommand, "r");
         char text[64] = "";
         EXPECT_NE(fgets(text, sizeof text, file), nullptr);
         EXPECT_EQ(write(out, text, strlen(text)), static_cast<ssize_t>(strlen(text)));
         EXPECT_EQ(pclose(file), 0);
     },
     true},
};

bool shell_blocks_nothing() {
    const sigset_t usr2 = set_of({SIGUSR2});
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &usr2, &before);
    bool blocks = false;
    for (const Way &way : ways)
        blocks |= way.by_shell && mask_of_child(way.start) != 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return !blocks;
}

void expect_all_block(uint64_t mask) {
    const bool nothing = shell_blocks_nothing();
    for (const Way &way : ways)
        EXPECT_EQ(mask_of_child(way.start), way.by_shell && nothing ? 0 : mask) << way.name;
}

// On a worker whose kernel thread is the library's, in a runtime that preempts or not.
void on_a_worker(const std::function<void()> &work, unsigned mode = THRUM_PREEMPT_DEFAULT) {
    const thrum_config config{2, 0, {mode, 0, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    thrum_attr_t attr = attr_queued();
    ASSERT_EQ(thrum_attr_set_worker(&attr, 1), 0);
    { Light(work, &attr); }
    EXPECT_EQ(thrum_fini(), 0);
}

class Children : public UltPlain, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        UltPlain::SetUp();
        if (ULT_ASAN || ULT_TSAN || ULT_EMULATED)
            GTEST_SKIP()
                << "sanitizers wrap some of these functions; an emulator has no such /proc/self/status";
        const sigset_t usr2 = set_of({SIGUSR2});
        pthread_sigmask(SIG_BLOCK, &usr2, &before_);
        pthread_sigmask(SIG_BLOCK, nullptr, &ours_);
    }
    void TearDown() override {
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        UltPlain::TearDown();
    }
    uint64_t ours() const { return bits_of(ours_); }

  private:
    sigset_t before_{}, ours_{};
};

INSTANTIATE_TEST_SUITE_P(Modes, Children,
                         testing::Values(THRUM_PREEMPT_DEFAULT, THRUM_PREEMPT_NONE, THRUM_PREEMPT_LEND,
                                         THRUM_PREEMPT_KLT));

} // namespace

TEST_P(Children, BlockWhatTheProgramBlocks) {
    on_a_worker([this] { expect_all_block(ours()); }, GetParam());
}

TEST_P(Children, AndSoDoThoseOfThePrimary) {
    const thrum_config config{1, 0, {GetParam(), 0, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    expect_all_block(ours());
    EXPECT_EQ(thrum_fini(), 0);
}

// One that has chosen what it blocks has it in its children, as everywhere.
TEST_P(Children, BlockWhatTheirThreadHasChosen) {
    on_a_worker(
        [] {
            const sigset_t chosen = set_of({SIGTERM, SIGUSR1});
            sigset_t before;
            pthread_sigmask(SIG_SETMASK, &chosen, &before);
            expect_all_block(bits_of(chosen));
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
        },
        GetParam());
}

TEST_P(Children, BlockWhatTheAttributesSay) {
    on_a_worker(
        [] {
            const sigset_t chosen = set_of({SIGHUP});
            posix_spawnattr_t attr;
            posix_spawnattr_init(&attr);
            posix_spawnattr_setsigmask(&attr, &chosen);
            posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
            EXPECT_EQ(mask_of_child([&attr](int out) { spawn(posix_spawn, out, &attr); }), bits_of(chosen));
            posix_spawnattr_destroy(&attr);
        },
        GetParam());
}

// The mask of the worker is as before, also where exec has failed.
TEST_P(Children, LeaveTheWorkerItsMask) {
    on_a_worker(
        [] {
            sigset_t before, after;
            pthread_sigmask(SIG_BLOCK, nullptr, &before);
            for (const Way &way : ways)
                mask_of_child(way.start);
            char *const none[] = {nullptr};
            EXPECT_EQ(execv("/nonexistent", none), -1);
            EXPECT_EQ(errno, ENOENT);
            pthread_sigmask(SIG_BLOCK, nullptr, &after);
            EXPECT_EQ(bits_of(before), bits_of(after));
        },
        GetParam());
}

TEST_P(Children, EndByTheSignalsThatTheyAreSent) {
    on_a_worker(
        [] {
            EXPECT_TRUE(WIFSIGNALED(system("kill -TERM $$")));
            const int status = system("kill -INT $$"); // ignored by the waiting process, not by the child
            EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
            FILE *file = popen("kill -TERM $$", "w");
            ASSERT_NE(file, nullptr);
            EXPECT_TRUE(WIFSIGNALED(pclose(file)));
        },
        GetParam());
}

TEST_P(Children, OfSystem) {
    on_a_worker(
        [] {
            EXPECT_NE(system(nullptr), 0);
            EXPECT_EQ(WEXITSTATUS(system("exit 3")), 3);
            EXPECT_EQ(WEXITSTATUS(system("nonexistent_command_of_ours 2>/dev/null")), 127);
            struct sigaction now {};
            sigaction(SIGINT, nullptr, &now);
            EXPECT_EQ(now.sa_handler, SIG_DFL);
            sigaction(SIGQUIT, nullptr, &now);
            EXPECT_EQ(now.sa_handler, SIG_DFL);
        },
        GetParam());
}

TEST_P(Children, OfPopen) {
    on_a_worker(
        [] {
            FILE *first = popen("cat >/dev/null; exit 4", "w"), *second = popen("echo two; exit 5", "re");
            ASSERT_NE(first, nullptr);
            ASSERT_NE(second, nullptr);
            char text[16] = "";
            EXPECT_NE(fgets(text, sizeof text, second), nullptr);
            EXPECT_STREQ(text, "two\n");
            EXPECT_GE(fputs("one", first), 0);
            EXPECT_EQ(WEXITSTATUS(pclose(first)), 4); // which ends, as no other child has its pipe
            EXPECT_EQ(WEXITSTATUS(pclose(second)), 5);
            EXPECT_EQ(popen("true", "x"), nullptr);
            EXPECT_EQ(errno, EINVAL);
            EXPECT_EQ(popen("true", "rw"), nullptr);
        },
        GetParam());
}

// Many at once, from all workers.
TEST_P(Children, OfMany) {
    const thrum_config config{3, 0, {GetParam(), 0, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    {
        const thrum_attr_t attr = attr_queued();
        std::vector<Light> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back(
                [i] {
                    const std::string number = std::to_string(i);
                    FILE *file = popen(("echo " + number).c_str(), "r");
                    char text[16] = "";
                    EXPECT_NE(fgets(text, sizeof text, file), nullptr);
                    EXPECT_EQ(text, number + "\n");
                    EXPECT_EQ(pclose(file), 0);
                    EXPECT_EQ(WEXITSTATUS(system(("exit " + number).c_str())), i);
                },
                &attr);
    }
    EXPECT_EQ(thrum_fini(), 0);
}

namespace {

std::atomic<int> children_taken;

void take_children(int) {
    const int error = errno;
    while (waitpid(-1, nullptr, WNOHANG) > 0)
        children_taken++;
    errno = error;
}

} // namespace

// On the kernel thread that has the program's mask: a handler there waits until system() has its child.
TEST_P(Children, OfSystemAreNotTakenByAHandler) {
    if (GetParam() == THRUM_PREEMPT_KLT)
        GTEST_SKIP() << "it runs there while the thread is on another kernel thread";
    struct sigaction action {
    }, before{};
    action.sa_handler = take_children;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigaction(SIGCHLD, &action, &before);
    const thrum_config config{1, 0, {GetParam(), 0, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    in_ult([] {
        for (int i = 0; i < 10; i++)
            EXPECT_EQ(WEXITSTATUS(system("exit 7")), 7);
        sigset_t now;
        pthread_sigmask(SIG_BLOCK, nullptr, &now);
        EXPECT_EQ(sigismember(&now, SIGCHLD), 0);
    });
    EXPECT_EQ(thrum_fini(), 0);
    sigaction(SIGCHLD, &before, nullptr);
    EXPECT_EQ(children_taken.exchange(0), 0);
}

// Others run while it waits, from the first slice on: with slices as long as these, 64 of them would take longer than the
// child is given.
TEST_P(Children, OfSystemLetOthersRun) {
    constexpr unsigned kLong = 200000;
    if (GetParam() == THRUM_PREEMPT_NONE || (GetParam() == THRUM_PREEMPT_DEFAULT && !default_preempts()))
        GTEST_SKIP() << "no thread is preempted";
    const int status = in_child(
        [] {
            const Preempting preempting(1, GetParam(), kLong);
            char name[] = "/tmp/thrum-system-XXXXXX";
            const int fd = mkstemp(name);
            std::atomic<bool> over{false};
            Thread other([&] {
                unlink(name); // what the child waits for
                while (!over) {
                }
            });
            const std::string command = std::string("for i in $(seq 200); do test -e ") + name +
                                        " || exit 0; sleep 0.05; done; exit 1";
            EXPECT_EQ(system(command.c_str()), 0);
            over = true;
            other.join();
            close(fd);
            return testing::Test::HasFailure() ? 1 : 0;
        },
        8);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
