// SPDX-License-Identifier: Apache-2.0
//
// Preemption in the modes lend and own-tls against what libc keeps in its thread control blocks: the ids that setuid() gives to all
// threads, cancellation; and, also in mode klt, thread-local variables of libraries that are loaded meanwhile.
#include <dirent.h>
#include <dlfcn.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include "preempt.hpp"

namespace {

enum { SLICE = 50, LIMIT = 60, NOBODY = 65534 }; // us, s

// Of the runtimes, in children of fork, too: that of the test.
unsigned mode;

// Threads that compute on all workers, so that each runs on a block that is not its own, and is preempted all the time; and
// some that do something else. All have begun when it is there, so that no more blocks are wanted: to make them takes
// locks of libc's.
class Crowd {
  public:
    explicit Crowd(unsigned spinners, unsigned others = 0, const std::function<void()> &work = nullptr)
        : spinners_(spinners) {
        const unsigned count = spinners + others;
        for (unsigned i = 0; i < count; i++)
            threads_.emplace_back([this, i, work] {
                arrived_++;
                wait_for(i < spinners_ ? stop_ : go_);
                if (i >= spinners_)
                    work();
            });
        while (arrived_ < count) {
        }
        const uint64_t end = in_ms(20);
        while (thrum_now() < end) {
        }
        go_ = true;
    }
    ~Crowd() { stop_ = true; }
    // ... those others.
    void join() {
        while (threads_.size() > spinners_)
            threads_.pop_back();
    }

  private:
    const unsigned spinners_;
    std::atomic<unsigned> arrived_{0};
    std::atomic<bool> stop_{false}, go_{false};
    std::vector<Thread> threads_; // joined before the flags go
};

// By a thread of each kind: the thread that called thrum_init, a ULT, an external kernel thread.
enum class Caller { PRIMARY, ULT, EXTERNAL };

void by(Caller caller, const std::function<void()> &work) {
    std::atomic<bool> done{false};
    switch (caller) {
    case Caller::PRIMARY: work(); break;
    case Caller::ULT: Thread{work}.join(); break;
    case Caller::EXTERNAL:
        std::thread thread([&] {
            work();
            done = true;
        });
        while (!done)
            thrum_yield();
        thread.join();
    }
}

// --- ids ----------------------------------------------------------------------------------------------------

int set_own_ids(int times) {
    int wrong = 0;
    for (int i = 0; i < times; i++)
        wrong += setuid(getuid()) != 0 || setgid(getgid()) != 0;
    return wrong;
}

int everybody_sets_ids(unsigned workers) {
    const int times = divided(12);
    std::atomic<int> wrong{0};
    const Preempting runtime(workers, mode, SLICE);
    const uint64_t before = preemptions();
    {
        Crowd crowd(workers + 2, 3, [&] { wrong += set_own_ids(times); });
        std::thread outside([&] { wrong += set_own_ids(times); });
        wrong += set_own_ids(times);
        crowd.join();
        by(Caller::EXTERNAL, [&] { wrong += set_own_ids(times); });
        outside.join();
    }
    wrong += preemptions() - before < 10;
    return wrong;
}

// Does each kernel thread of the process have the line? "Uid:\t1\t2\t3\t4".
bool all_have(const std::string &wanted) {
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == nullptr)
        return false;
    int with = 0, without = 0;
    for (const dirent *task; (task = readdir(tasks)) != nullptr;) {
        std::ifstream status("/proc/self/task/" + std::string(task->d_name) + "/status");
        if (task->d_name[0] == '.' || !status)
            continue; // it is gone
        bool found = false;
        for (std::string line; !found && std::getline(status, line);)
            found = line == wanted;
        ++(found ? with : without);
    }
    closedir(tasks);
    return with > 0 && without == 0;
}

bool all_have_ids(const char *name, std::initializer_list<unsigned> ids) {
    std::ostringstream line;
    line << name << ":";
    for (const unsigned id : ids)
        line << '\t' << id;
    return eventually([&] { return all_have(line.str()); });
}

// Root's own, back and forth and then for good. A thread that kept what others have lost would not fail as they do, and libc
// would abort.
int ids_change(unsigned workers, Caller caller) {
    const Preempting runtime(workers, mode, SLICE);
    const Crowd crowd(workers + 2);
    int wrong = 0;
    for (int i = 0; i < 6; i++)
        by(caller, [&] { wrong += seteuid(NOBODY) != 0 || setegid(1) != -1 || seteuid(0) != 0; });
    wrong += !all_have_ids("Uid", {0, 0, 0, 0});
    by(caller, [&] { wrong += seteuid(NOBODY) != 0; });
    wrong += !all_have_ids("Uid", {0, NOBODY, 0, NOBODY});
    by(caller, [&] {
        const gid_t groups[] = {7, 11, 13};
        wrong += seteuid(0) != 0 || setgroups(3, groups) != 0 || setresgid(1, 2, 2) != 0 ||
                 setresuid(NOBODY, NOBODY, NOBODY) != 0;
    });
    for (int i = 0; i < 6; i++)
        by(caller, [&] { wrong += setuid(0) != -1 || errno != EPERM || setegid(1) != 0 || setegid(2) != 0; });
    wrong += !all_have_ids("Uid", {NOBODY, NOBODY, NOBODY, NOBODY});
    wrong += !all_have_ids("Gid", {1, 2, 2, 2});
    wrong += !all_have("Groups:\t7 11 13 ");
    return wrong;
}

// --- the primary, elsewhere ---------------------------------------------------------------------------------

// The primary holds a lock for which a tasklet waits, and so resumes where that is relieved
// (preempt_relief_test.cpp): does `there`, and when it has come home `then`. What they return is added.
int relieved(
    const std::function<int()> &there, const std::function<int()> &then = [] { return 0; }) {
    const Preempting runtime(1, mode, SLICE);
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    int wrong = thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED | THRUM_SPAWN_TASKLET) != 0;
    pthread_mutex_lock(&lock);
    {
        const Light wants(
            [] {
                pthread_mutex_lock(&lock);
                pthread_mutex_unlock(&lock);
            },
            &attr);
        while (gettid() == getpid()) {
        }
        wrong += there();
        wrong += gettid() == getpid();
        pthread_mutex_unlock(&lock);
    }
    while (gettid() != getpid())
        thrum_yield();
    return wrong + then();
}

int changes_ids() {
    int wrong = 0;
    for (int i = 0; i < 3; i++) {
        wrong += seteuid(NOBODY) != 0 || !all_have_ids("Uid", {0, NOBODY, 0, NOBODY});
        wrong += seteuid(0) != 0 || !all_have_ids("Uid", {0, 0, 0, 0});
    }
    return wrong;
}

// Whether SIGTERM ends a program that the caller starts, by the mask that this finds it has; and a child of fork, which sends it to
// itself.
bool children_can_be_ended() {
    char grep[] = "grep", quiet[] = "-q", mask[] = "^SigBlk:.*[012389ab]...$", file[] = "/proc/self/status";
    char *const arguments[] = {grep, quiet, mask, file, nullptr};
    pid_t child = 0;
    int status = 0;
    if (posix_spawnp(&child, grep, nullptr, nullptr, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return false;
    child = fork();
    if (child == 0) {
        kill(getpid(), SIGTERM);
        _exit(1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGTERM;
}

bool blocks(int signal) {
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    return sigismember(&set, signal) == 1;
}

void change_mask(int how, int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(how, &set, nullptr);
}

int has_its_mask() {
    change_mask(SIG_BLOCK, SIGUSR1);
    const auto there = [] {
        const int wrong = !children_can_be_ended() + !blocks(SIGUSR1) + blocks(SIGTERM);
        change_mask(SIG_UNBLOCK, SIGUSR1);
        change_mask(SIG_BLOCK, SIGUSR2);
        return wrong;
    };
    return relieved(there, [] { return blocks(SIGUSR1) + !blocks(SIGUSR2) + blocks(SIGTERM); });
}

// Its kernel thread and the one that it is on have a CPU each; it asks where it is.
int knows_its_cpu() {
    cpu_set_t may;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return 1;
    std::vector<int> cpus;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &may))
            cpus.push_back(i);
    const auto pin = [](pid_t tid, int cpu) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        return sched_setaffinity(tid, sizeof one, &one) == 0;
    };
    return relieved([&] {
        int wrong = 0;
        for (int i = 0; i < 10; i++) {
            const int here = i % 2 == 0 ? cpus.front() : cpus.back(),
                      home = i % 2 == 0 ? cpus.back() : cpus.front();
            wrong += !pin(getpid(), home) || !pin(0, here) || sched_getcpu() != here;
        }
        return wrong + !pin(getpid(), cpus.front());
    });
}

// By another thread, while it computes, or waits in the kernel. Ends the process.
int is_cancelled_from_outside(bool waits) {
    static std::atomic<bool> asked{false};
    std::thread([self = pthread_self(), here = gettid(), waits] {
        for (int i = 0; waits && i < 20 && !is_asleep(here); i++)
            usleep(1000);
        pthread_cancel(self);
        asked = true;
    }).detach();
    pthread_cleanup_push([](void *) { _exit(0); }, nullptr);
    while (waits)
        pause();
    wait_for(asked);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return 1;
}

int is_cancelled_elsewhere(bool waits) {
    return relieved([waits] { return is_cancelled_from_outside(waits); });
}

// Others run on its worker.
int is_cancelled_among_others(bool waits) {
    const Preempting runtime(1, mode, SLICE);
    const Crowd crowd(3);
    return is_cancelled_from_outside(waits);
}

// --- cancellation -------------------------------------------------------------------------------------------

void *sleep_on(void *) {
    for (;;)
        pause();
}

void *compute_on(void *started) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    static_cast<std::atomic<bool> *>(started)->store(true);
    for (volatile long i = 0;; i = i + 1) {
    }
}

bool is_cancelled(void *(*fn)(void *)) {
    pthread_t thread;
    std::atomic<bool> started{fn != compute_on};
    void *result = nullptr;
    if (pthread_create(&thread, nullptr, fn, &started) != 0)
        return false;
    wait_for(started);
    return pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

int units_cancel_threads(unsigned workers) {
    std::atomic<int> wrong{0};
    const Preempting runtime(workers, mode, SLICE);
    Crowd crowd(workers + 2, 3, [&] {
        for (int i = 0; i < divided(8); i++)
            wrong += !is_cancelled(sleep_on) + !is_cancelled(compute_on);
    });
    crowd.join();
    return wrong;
}

// Other units on the worker were not meant meanwhile, though the signal comes to its kernel thread.
int the_primary_is_cancelled() {
    const Preempting runtime(1, mode, SLICE);
    const pthread_t primary = pthread_self();
    std::vector<Thread> threads;
    std::atomic<int> running{0};
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            running++;
            while (running < 4) {
            }
            if (i == 0) {
                std::thread([&] { pthread_cancel(primary); }).join();
                running++;
            }
            const uint64_t end = in_ms(50);
            while (running < 5 || thrum_now() < end)
                pthread_testcancel();
            if (++running == 9)
                _exit(0); // before the primary resumes, which would end it
            for (;;) {
            }
        });
    threads.clear();
    return 1;
}

// A unit that means itself means a donor, and another unit may run on its block meanwhile.
int a_unit_cancels_itself() {
    const Preempting runtime(2, mode, SLICE);
    Crowd crowd(4, 8, [] {
        pthread_cancel(pthread_self());
        const uint64_t end = in_ms(20);
        while (thrum_now() < end)
            pthread_testcancel();
    });
    crowd.join();
    return 0;
}

class Libc : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        if (ULT_EMULATED)
            GTEST_SKIP() << "the emulator keeps these signals for itself";
        mode = GetParam();
    }
};

// Some wait with a block each that was there before; more come than there are blocks. The library stays where it is, so in a
// process of its own.
int loads_a_library() {
    const Preempting runtime(2, mode, SLICE);
    std::atomic<int (*)()> check{nullptr};
    std::atomic<int> wrong{0}, failed{0};
    const auto look = [&] {
        while (check == nullptr && failed == 0) {
        }
        const uint64_t end = in_ms(50);
        while (failed == 0 && thrum_now() < end)
            wrong += !check.load()();
    };
    std::vector<Thread> threads;
    for (int i = 0; i < 16; i++)
        threads.emplace_back(look);
    std::thread outside(look);
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            void *library = dlopen(INITIAL_EXEC_MODULE, RTLD_NOW);
            void *symbol = library != nullptr ? dlsym(library, "as_it_should_be") : nullptr;
            failed += symbol == nullptr;
            check = reinterpret_cast<int (*)()>(symbol);
        });
    look();
    threads.clear();
    outside.join();
    for (int i = 0; i < 100; i++)
        threads.emplace_back(look);
    threads.clear();
    wrong += preemptions() < 10;
    return wrong + failed;
}

// Where threads run on blocks of others.
class PreemptLibc : public Libc {};

class PreemptLoaded : public Interrupted, public testing::WithParamInterface<unsigned> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        mode = GetParam();
    }
};

INSTANTIATE_TEST_SUITE_P(Modes, PreemptLibc, testing::Values(THRUM_PREEMPT_LEND, THRUM_PREEMPT_OWN_TLS),
                         name_of_mode);
INSTANTIATE_TEST_SUITE_P(Modes, PreemptLoaded, kSafeModes, name_of_mode);

} // namespace

TEST_P(PreemptLibc, EverybodyMaySetIds) {
    for (unsigned workers : {1U, 2U, 4U})
        EXPECT_EQ(in_child([=] { return everybody_sets_ids(workers); }, LIMIT), 0) << workers;
}

TEST_P(PreemptLibc, IdsAreThoseOfAllThreads) {
    if (getuid() != 0)
        GTEST_SKIP() << "only root can have other ids";
    for (unsigned workers : {1U, 2U, 4U})
        for (const Caller caller : {Caller::PRIMARY, Caller::ULT, Caller::EXTERNAL})
            EXPECT_EQ(in_child([=] { return ids_change(workers, caller); }, LIMIT), 0)
                << workers << " " << static_cast<int>(caller);
}

TEST_P(PreemptLibc, ThePrimaryChangesIdsWhileItIsRelievedElsewhere) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root may";
    EXPECT_EQ(in_child([] { return relieved(changes_ids, changes_ids); }, LIMIT), 0);
}

TEST_P(PreemptLibc, ThePrimaryHasItsSignalMaskElsewhere) {
    EXPECT_EQ(in_child(has_its_mask, LIMIT), 0);
}

TEST_P(PreemptLibc, ThePrimaryKnowsItsCpuElsewhere) {
    EXPECT_EQ(in_child(knows_its_cpu, LIMIT), 0);
}

TEST_P(PreemptLibc, ThePrimaryIsCancelledElsewhere) {
    for (const bool waits : {false, true})
        EXPECT_EQ(in_child([=] { return is_cancelled_elsewhere(waits); }, LIMIT), 0) << waits;
}

TEST_P(PreemptLibc, ThePrimaryIsCancelledWhileOthersRun) {
    for (const bool waits : {false, true})
        for (int i = 0; i < 5; i++)
            EXPECT_EQ(in_child([=] { return is_cancelled_among_others(waits); }, LIMIT), 0) << waits;
}

#ifdef RSEQ_SIG
// The kernel writes to a block as long as its thread is on its own kernel thread.
TEST_P(PreemptLibc, RestartableSequencesAreBackAfterwards) {
    const auto cpu = [] {
        auto *area =
            reinterpret_cast<struct rseq *>(static_cast<char *>(__builtin_thread_pointer()) + __rseq_offset);
        return static_cast<int>(__atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED));
    };
    if (__rseq_size == 0)
        GTEST_SKIP() << "libc has not registered them";
    for (int i = 0; i < 2; i++) {
        EXPECT_GE(cpu(), 0);
        const Preempting runtime(1, mode, SLICE);
        EXPECT_LT(cpu(), 0);
        EXPECT_GE(sched_getcpu(), 0);
        EXPECT_EQ(in_child([&] { return cpu() >= 0 ? 0 : 1; }), 0);
    }
    EXPECT_GE(cpu(), 0);
}
#endif

TEST_P(PreemptLibc, ThreadsOfTheProgramsAreCancelled) {
    for (unsigned workers : {1U, 2U, 4U})
        EXPECT_EQ(in_child([=] { return units_cancel_threads(workers); }, LIMIT), 0) << workers;
}

TEST_P(PreemptLibc, ThePreemptorOfACancelledThreadIsNotCancelled) {
    EXPECT_EQ(in_child(the_primary_is_cancelled, LIMIT), 0);
}

TEST_P(PreemptLibc, DonorsAreNotCancelled) {
    EXPECT_EQ(in_child(a_unit_cancels_itself, LIMIT), 0);
}

// Libc's own handlers are there again afterwards, so that the next runtime finds them.
TEST_P(PreemptLibc, RuntimesFollowEachOther) {
    for (int i = 0; i < 5; i++) {
        {
            const Preempting runtime(2, mode, SLICE);
            const Crowd crowd(3);
            EXPECT_EQ(set_own_ids(2), 0);
        }
        std::thread outside([] { EXPECT_EQ(set_own_ids(2), 0); });
        EXPECT_EQ(set_own_ids(2), 0);
        outside.join();
    }
}

TEST_P(PreemptLibc, AChildOfForkSetsIds) {
    const Preempting runtime(2, mode, SLICE);
    const Crowd crowd(3);
    Thread forks([] {
        const int status = in_child(
            [] {
                int wrong = set_own_ids(2);
                std::thread outside([&] { wrong += set_own_ids(2); });
                outside.join();
                return wrong + everybody_sets_ids(2);
            },
            LIMIT);
        EXPECT_EQ(status, 0);
    });
}

// It resumes with a block that was a donor's; libc unmaps that of the worker's kernel thread when the next thread
// ends, and the kernel must not write there any more.
TEST_P(PreemptLibc, AChildOfForkDoesNotNeedItsWorkersBlock) {
    const Preempting runtime(2, mode, SLICE);
    std::atomic<bool> done{false};
    Thread forks([&] { // the primary has the other worker
        EXPECT_EQ(in_child([] {
                      std::thread([] {}).join();
                      const uint64_t end = in_ms(20);
                      while (thrum_now() < end)
                          sched_yield();
                      return 0;
                  }),
                  0);
        done = true;
    });
    wait_for(done);
}

TEST_P(PreemptLoaded, ThreadLocalsOfALibraryAreRight) {
    EXPECT_EQ(in_child(loads_a_library, LIMIT), 0);
}
