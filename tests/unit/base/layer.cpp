// SPDX-License-Identifier: Apache-2.0
//
// See layer.hpp.
#include "layer.hpp"

#include <dirent.h>
#include <string.h>
#include <sys/wait.h>

#include <chrono>

bool eventually(const std::function<bool()> &condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        usleep(500);
    }
    return true;
}

void a_while() {
    usleep(30000);
}

pid_t own_tid() {
    return static_cast<pid_t>(syscall(SYS_gettid));
}

// --- plain threads and processes ----------------------------------------------------------------------------

static void *plain_main(void *work) {
    (*static_cast<std::function<void()> *>(work))();
    return nullptr;
}

Plain::Plain(std::function<void()> work, size_t stack_size)
    : work_(std::make_unique<std::function<void()>>(std::move(work))) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_size);
    if (pthread_create(&handle_, &attributes, plain_main, work_.get()) != 0)
        abort();
    pthread_attr_destroy(&attributes);
}

void Plain::join() {
    void *result = nullptr;
    if (joined_)
        return;
    pthread_join(handle_, &result);
    joined_ = true;
    cancelled_ = result == PTHREAD_CANCELED;
}

bool Plain::cancelled() {
    join();
    return cancelled_;
}

int in_child(const std::function<int()> &work) {
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(work());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#if UNIT_TSAN
// A creator writes into, and others read, a thread-local of a thread that has just been made. ThreadSanitizer
// takes that thread's own set-up for a write to all of its thread-locals.
extern "C" const char *__tsan_default_suppressions();
extern "C" const char *__tsan_default_suppressions() {
    return "race:kthread_mark\nrace:kthread_of_sigsafe\n";
}

// The tests fork, and start threads in the child.
extern "C" const char *__tsan_default_options();
extern "C" const char *__tsan_default_options() {
    return "die_after_fork=0";
}
#endif

// --- the table ------------------------------------------------------------------------------------------------

struct libc_threads libc;

namespace {

libc_threads real;

int table_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*fn)(void *), void *argument) {
    int error = faults.create.strike();
    return error != 0 ? error : pthread_create(handle, attributes, fn, argument);
}

int table_join(pthread_t handle, void **result) {
    int error = faults.join.strike(), answer = pthread_join(handle, result);
    return error != 0 ? error
                      : answer; // joined all the same: only what the layer makes of the answer is in question
}

int table_detach(pthread_t handle) {
    int error = faults.detach.strike();
    return error != 0 ? error : pthread_detach(handle);
}

struct Iteration {
    int (*visit)(dl_phdr_info *, size_t, void *);
    void *argument;
};

// A sanitizer's run-time library keeps its own thread's state in its thread-locals: not to be put back.
int visit_but_sanitizers(dl_phdr_info *info, size_t size, void *argument) {
    auto *iteration = static_cast<Iteration *>(argument);
    for (const char *name : {"/libasan.so", "/libubsan.so", "/libtsan.so", "/liblsan.so"})
        if (strstr(info->dlpi_name, name) != nullptr)
            return 0;
    return iteration->visit(info, size, iteration->argument);
}

int table_iterate(int (*visit)(dl_phdr_info *, size_t, void *), void *argument) {
    Iteration iteration{visit, argument};
    if (faults.iterate.strike() != 0)
        return 0; // sees no module
    return dl_iterate_phdr(visit_but_sanitizers, &iteration);
}

int visit_linked_only(dl_phdr_info *info, size_t size, void *argument) {
    auto *iteration = static_cast<Iteration *>(argument);
    return strstr(info->dlpi_name, "libunit-base-linked") != nullptr
               ? iteration->visit(info, size, iteration->argument)
               : 0;
}

int iterate_linked_only(int (*visit)(dl_phdr_info *, size_t, void *), void *argument) {
    Iteration iteration{visit, argument};
    return dl_iterate_phdr(visit_linked_only, &iteration);
}

int visit_with_wrong_number(dl_phdr_info *info, size_t size, void *argument) {
    auto *iteration = static_cast<Iteration *>(argument);
    dl_phdr_info wrong = *info;
    if (wrong.dlpi_tls_modid != 0)
        wrong.dlpi_tls_modid += 1000;
    return iteration->visit(&wrong, size, iteration->argument);
}

int iterate_with_wrong_numbers(int (*visit)(dl_phdr_info *, size_t, void *), void *argument) {
    Iteration iteration{visit, argument};
    return dl_iterate_phdr(visit_with_wrong_number, &iteration);
}

void table_register(__pthread_unwind_buf_t *buffer) {
    faults.register_cancel++;
    real.register_cancel(buffer);
}

void table_unregister(__pthread_unwind_buf_t *buffer) {
    faults.unregister_cancel++;
    real.unregister_cancel(buffer);
}

#if UNIT_ASAN
extern "C" void __asan_handle_no_return();
#endif

// The frames that are left out here are never returned to, which the sanitizer must be told.
void table_unwind(__pthread_unwind_buf_t *buffer) {
    faults.unwind_next++;
#if UNIT_ASAN
    __asan_handle_no_return();
#endif
    real.unwind_next(buffer);
}

void table_call_dtors() {
    faults.call_tls_dtors++;
    real.call_tls_dtors();
}

template <typename Function>
void find(Function &slot, const char *name) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol == nullptr) {
        fprintf(stderr, "this C library has no %s\n", name);
        abort();
    }
    memcpy(&slot, &symbol, sizeof symbol);
}

size_t fill_table() {
    find(real.register_cancel, "__pthread_register_cancel");
    find(real.unregister_cancel, "__pthread_unregister_cancel");
    find(real.unwind_next, "__pthread_unwind_next");
    find(real.call_tls_dtors, "__call_tls_dtors");
    libc.pthread_create = table_create;
    libc.pthread_join = table_join;
    libc.pthread_detach = table_detach;
    libc.pthread_exit = pthread_exit;
    libc.pthread_cancel = pthread_cancel;
    libc.register_cancel = table_register;
    libc.unregister_cancel = table_unregister;
    libc.unwind_next = table_unwind;
    libc.call_tls_dtors = real.call_tls_dtors; // until kthread_init has looked where it stands
    size_t size = 0, alignment = 0;
    find(libc.tls_static_info, "_dl_get_tls_static_info");
    libc.tls_static_info(&size, &alignment);
    stack_init(size + alignment);
    return size + alignment;
}

bool init_with(int (*iterate)(int (*)(dl_phdr_info *, size_t, void *), void *)) {
    libc.dl_iterate_phdr = iterate;
    return kthread_init();
}

LayerInit init_once() {
    LayerInit init{};
    init.static_tls = fill_table();
    faults.iterate.next(1, ENOMEM);
    init.with_nothing = init_with(table_iterate);
    init.with_one_module = init_with(iterate_linked_only);
    init.with_wrong_numbers = init_with(iterate_with_wrong_numbers);
    init.with_libc = init_with(table_iterate);
    init.once_more = init_with(table_iterate);
    libc.call_tls_dtors = table_call_dtors;
    faults_clear();
    return init;
}

} // namespace

const LayerInit &layer_init() {
    static const LayerInit init = init_once();
    return init;
}

// --- the fixture ------------------------------------------------------------------------------------------------

size_t known_descriptors() {
    size_t count = 0;
    registry_each([](kthread *, void *counter) { ++*static_cast<size_t *>(counter); }, &count);
    return count;
}

size_t threads_of_process() {
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (dirent *task = readdir(tasks))
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

uint64_t counted(enum kthread_retire why) {
    return load_relaxed(&thrum_cache_counters.retired_by[why - 1]);
}

// The debug library's.
extern "C" bool rows_skip(const char *list) __attribute__((weak));

// Where the kernel does not tell of robust mutexes each thread retires. Assertions come with a way to leave that row out.
static bool can_reuse() {
    void *head;
    size_t length;
    static const bool can =
        syscall(SYS_get_robust_list, 0, &head, &length) == 0 || (rows_skip != nullptr && rows_skip("robust"));
    return can;
}

void Layer::SetUp() {
    if (!can_reuse())
        GTEST_SKIP() << "no get_robust_list here (an emulator): no thread is reused";
    if (!layer_init().with_libc && syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr, 0, 0) != 0 &&
        errno == ENOSYS)
        GTEST_SKIP() << "no process_vm_readv here (an emulator): the layer stays off";
    ASSERT_TRUE(layer_init().with_libc);
    faults_clear();
    Plain([] {}).join(); // a sanitizer's own thread comes with the first one
    ASSERT_TRUE(eventually([] { return threads_of_process() <= 1 + kForeignThreads; }));
    descriptors_before_ = known_descriptors();
    threads_before_ = threads_of_process();
    ASSERT_EQ(descriptors_before_, 0u) << "left by an earlier test";
    ASSERT_EQ(thrum_cache_counters.idle, 0u) << "left by an earlier test";
}

void Layer::TearDown() {
    if (IsSkipped())
        return;
    faults_clear();
    EXPECT_TRUE(eventually([] { return load_relaxed(&thrum_cache_counters.live) == 0; }))
        << "logical threads left";
    // A detached one may be between its last count and the list.
    EXPECT_TRUE(eventually([] {
        kthread_cull();
        return known_descriptors() == 0;
    })) << "descriptors left";
    kthread_config = {};
    kthread_config.max_idle = UINT64_MAX;
    EXPECT_EQ(load_relaxed(&thrum_cache_counters.idle), 0u);
    EXPECT_TRUE(eventually([this] { return threads_of_process() <= threads_before_; }))
        << "kernel threads left";
}

static void *run_job_of_test(void *job) {
    return (*static_cast<std::function<void *()> *>(job))();
}

Layer::Started Layer::start_of(const kthread_kind &kind, Job job, bool detached) {
    Started started;
    Job *kept;
    {
        std::lock_guard<std::mutex> guard(jobs_lock_);
        kept = &jobs_.emplace_back(std::move(job));
    }
    started.error = kthread_start(&kind, detached, run_job_of_test, kept, &started.handle);
    if (started.error == 0 && !detached)
        started.thread = kthread_of_sigsafe(started.handle);
    return started;
}

Layer::Started Layer::start(Job job, bool detached) {
    return start_of(kKind, std::move(job), detached);
}

void *Layer::join(const Started &started) {
    void *result = nullptr;
    EXPECT_EQ(started.error, 0);
    EXPECT_EQ(kthread_join(started.thread, &result, KTHREAD_JOIN_WAIT, CLOCK_REALTIME, nullptr), 0);
    return result;
}

pid_t Layer::run(Job job) {
    pid_t tid = 0;
    join(start([&]() -> void * {
        tid = own_tid();
        return job ? job() : nullptr;
    }));
    return tid;
}

void Layer::make_idle(unsigned count, const kthread_kind &of) {
    std::atomic<unsigned> inside{0};
    std::vector<Started> all;
    for (unsigned i = 0; i < count; i++)
        all.push_back(start_of(of, [&]() -> void * {
            inside++;
            eventually([&] { return inside == count; });
            return nullptr;
        }));
    for (const Started &one : all)
        join(one);
}
