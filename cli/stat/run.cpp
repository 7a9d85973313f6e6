// SPDX-License-Identifier: Apache-2.0
#include "stat/run.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "measure.hpp"
#include "process.hpp"
#include "program.hpp"
#include "stat/account.hpp"
#include "stat/allowance.hpp"
#include "stat/process_tree.hpp"
#include "stat/task_files.hpp"
#include "tools/clock.hpp"
#include "tools/failure.hpp"
#include "tools/words.hpp"

namespace thrum::stat {

namespace {

constexpr double kSweep = 0.01;  // seconds between two polls of the layers
constexpr double kLook = 0.1;    // and between two looks at the threads
constexpr double kBeside = 3e-3; // of one CPU, for all looks, where layers look as well
constexpr double kPart = 0.01;   // of one CPU, for the threads' context switches, with -p
constexpr double kTick = 0.5;
constexpr double kGrace = 2; // from asking a program to end to ending it

Failure failed(const std::string &what) {
    return {kFailed, what + ": " + std::strerror(errno)};
}

// --- streams and environment --------------------------------------------------------------------------

// What was left of the command's own stdin when the first run began, again for each run: what that one read of it has moved
// the offset, which they share. Of a pipe or a terminal there is but one reading.
Descriptor open_rest_of_stdin(off_t at) {
    struct stat status;
    if (at < 0 || fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode))
        return open_file("/dev/null", O_RDONLY);
    Descriptor file(open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC));
    if (file.get() < 0 || lseek(file.get(), at, SEEK_SET) < 0)
        return open_file("/dev/null", O_RDONLY);
    return file;
}

// The descriptors that become 0, 1 and 2 in the child.
struct StreamFiles {
    explicit StreamFiles(const Streams &streams)
        : in(streams.own_input       ? Descriptor()
             : streams.input.empty() ? open_rest_of_stdin(streams.input_begin)
                                     : open_file(streams.input, O_RDONLY)),
          nowhere(streams.output == Streams::kNowhere ? open_file("/dev/null", O_WRONLY) : Descriptor()) {
        if (!streams.own_input)
            fds[0] = in.get();
        if (streams.capture >= 0) {
            fds[1] = fds[2] = streams.capture;
            return;
        }
        if (streams.output == Streams::kNowhere)
            fds[1] = fds[2] = nowhere.get();
        else if (streams.output == Streams::kErrors)
            fds[1] = STDERR_FILENO;
    }
    const Descriptor in, nowhere;
    int fds[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
};

// LD_PRELOAD is a list: what a layer adds comes first.
void add_variable(std::vector<std::string> &environment, const std::string &entry) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    for (std::string &present : environment) {
        if (present.compare(0, name.size(), name) != 0)
            continue;
        const std::string before = present.substr(name.size());
        present = name == "LD_PRELOAD=" && !before.empty() ? entry + ":" + before : entry;
        return;
    }
    environment.push_back(entry);
}

std::vector<std::string> environment_of(const Launch &launch, const std::vector<Layer *> &layers) {
    std::vector<std::string> environment = launch.environment;
    for (const Layer *layer : layers)
        for (const std::string &entry : layer->environment())
            add_variable(environment, entry);
    return environment;
}

// The first so many of the CPUs that this process may use.
std::optional<cpu_set_t> first_processors(unsigned number) {
    cpu_set_t allowed, chosen;
    if (number == 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return std::nullopt;
    CPU_ZERO(&chosen);
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE && static_cast<unsigned>(CPU_COUNT(&chosen)) < number; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, &chosen);
    return chosen;
}

// --- the child ----------------------------------------------------------------------------------------

// A process that stands before execve(2) until it is told to continue. It says what went wrong, if something does.
class Child {
  public:
    Child(const Launch &launch, const Streams &streams, const std::vector<std::string> &environment,
          const Interrupts &interrupts);
    ~Child();
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;

    pid_t pid() const { return pid_; }
    // Returns when all is done that precedes the program: neither its time nor its CPU time is the program's. Throws Failure
    // where that cannot be done.
    void wait_until_ready();
    // Returns when it has become the program. Throws Failure where it cannot.
    void release();
    // As waitpid(2), once it has ended: it need not be ended any more.
    void ended() { pid_ = -1; }

  private:
    // Between fork and exec: system calls alone.
    [[noreturn]] void exec_program(const StreamFiles &files, const Streams &streams,
                                   const Interrupts &interrupts, const cpu_set_t *processors);
    [[noreturn]] void give_up(int error) const;
    // The next number that it says; 0 where it says none.
    int heard() const;

    static constexpr int kReady = 0; // else what errno says

    std::string path_;
    std::vector<char *> arguments_, shell_arguments_, variables_;
    pid_t pid_ = -1;
    int gate_[2] = {-1, -1}, word_[2] = {-1, -1};
};

Child::Child(const Launch &launch, const Streams &streams, const std::vector<std::string> &environment,
             const Interrupts &interrupts)
    : path_(launch.path), arguments_(pointers(launch.words)), shell_arguments_(pointers(launch.words)),
      variables_(pointers(environment)) {
    give_to_shell(path_, shell_arguments_);
    const StreamFiles files(streams);
    const std::optional<cpu_set_t> processors = first_processors(launch.processors);
    if (pipe2(gate_, O_CLOEXEC) != 0 || pipe2(word_, O_CLOEXEC) != 0)
        throw failed("cannot create a pipe");
    pid_ = fork();
    if (pid_ < 0)
        throw failed("cannot create a process");
    if (pid_ == 0)
        exec_program(files, streams, interrupts, processors ? &*processors : nullptr);
    close(gate_[0]);
    close(word_[1]);
    gate_[0] = word_[1] = -1;
}

Child::~Child() {
    for (const int fd : {gate_[0], gate_[1], word_[0], word_[1]})
        if (fd >= 0)
            close(fd);
    if (pid_ > 0) { // something was thrown meanwhile
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

void Child::exec_program(const StreamFiles &files, const Streams &streams, const Interrupts &interrupts,
                         const cpu_set_t *processors) {
    if (!streams.in_foreground())
        setsid();
    for (int i = 0; i < 3; i++)
        if (files.fds[i] != i && dup2(files.fds[i], i) < 0)
            give_up(errno);
    if (processors != nullptr && sched_setaffinity(0, sizeof *processors, processors) != 0)
        give_up(errno);
    interrupts.restore_in_child();
    char go;
    close(gate_[1]);
    if (write(word_[1], &kReady, sizeof kReady) < 0)
        _exit(kFailed);
    while (read(gate_[0], &go, 1) < 0 && errno == EINTR)
        continue;
    execve(path_.c_str(), arguments_.data(), variables_.data());
    if (errno == ENOEXEC)
        execve(kShell, shell_arguments_.data(), variables_.data());
    give_up(errno);
}

void Child::give_up(int error) const {
    if (write(word_[1], &error, sizeof error) < 0)
        _exit(kFailed);
    _exit(kNotExecutable);
}

int Child::heard() const {
    int number = 0;
    ssize_t got;
    while ((got = read(word_[0], &number, sizeof number)) < 0 && errno == EINTR)
        continue;
    return got == static_cast<ssize_t>(sizeof number) ? number : 0;
}

void Child::wait_until_ready() {
    if (const int error = heard(); error != kReady)
        throw not_executed(path_, error);
}

void Child::release() {
    close(gate_[1]); // which reads as the end of the file
    gate_[1] = -1;
    if (const int error = heard(); error != 0)
        throw not_executed(path_, error);
}

// --- what happens while it runs -----------------------------------------------------------------------

// The schedule of both kinds of runs: what is called when.
class Clockwork {
  public:
    Clockwork(pid_t pid, const std::vector<Layer *> &layers, const std::function<void()> &on_tick)
        : layers_(layers), on_tick_(on_tick), threads_(threads_from_now(pid)), begin_(seconds_now()) {}

    double elapsed() const { return seconds_now() - begin_; }
    // What is due is done; the seconds until the next is.
    double turn() {
        if (!layers_.empty() && due(next_sweep_, kSweep))
            for (Layer *layer : layers_)
                layer->poll(elapsed());
        if (due(next_look_, kLook))
            look_at_threads();
        if (due(next_tick_, kTick))
            on_tick_();
        const double next = layers_.empty() ? next_look_ : std::min(next_look_, next_sweep_);
        return std::max(0.0, next - elapsed());
    }
    void interrupted() {
        for (Layer *layer : layers_)
            layer->interrupted();
    }
    ThreadWatch &threads() { return threads_; }

  private:
    static ThreadWatch threads_from_now(pid_t pid) {
        ThreadWatch threads(pid);
        threads.look();
        threads.leave_out_what_was();
        return threads;
    }

    // Beside layers, which cost something themselves, seldom enough to be cheap: of many threads each look takes its
    // millisecond.
    void look_at_threads() {
        const double begin = thread_cpu_time();
        threads_.look();
        if (!layers_.empty())
            next_look_ = std::max(next_look_, elapsed() + (thread_cpu_time() - begin) / kBeside);
    }

    // On a grid, so that being called late does not make it rarer; what was missed altogether is left out.
    bool due(double &next, double period) const {
        const double at = elapsed();
        if (at < next)
            return false;
        next += period;
        if (next < at)
            next = at + period;
        return true;
    }

    const std::vector<Layer *> &layers_;
    const std::function<void()> &on_tick_;
    ThreadWatch threads_;
    double begin_, next_sweep_ = 0, next_look_ = 0.02, next_tick_ = kTick;
};

// Interrupts, as they reach a program in the foreground and one in a session of its own.
class Leash {
  public:
    // `time_limit`: seconds from now on; 0: none.
    Leash(pid_t pid, bool in_foreground, double time_limit, Measured &measured)
        : pid_(pid), in_foreground_(in_foreground), measured_(measured),
          limit_at_(time_limit > 0 ? seconds_now() + time_limit : 0) {}

    // One that does not end by the first is ended by the second, and then there is still something to report.
    void interrupted(const Interrupts &interrupts) {
        if (measured_.incomplete) {
            kill(target(), SIGKILL);
            if (is_killed_)
                throw Interrupted(interrupts.caught(), "");
            is_killed_ = true;
            return;
        }
        measured_.incomplete = true;
        deadline_ = seconds_now() + kGrace;
        if (!in_foreground_ || !interrupts.from_terminal()) // otherwise it has had the signal already
            kill(target(), interrupts.caught());
    }
    // One that shows itself to the user may take its time to end.
    void look_at_clock() {
        if (limit_at_ > 0 && seconds_now() >= limit_at_ && !measured_.incomplete) {
            kill(target(), measured_.timed_out ? SIGKILL : SIGTERM);
            measured_.timed_out = true;
            limit_at_ = seconds_now() + kGrace;
        }
        if (!measured_.incomplete || seconds_now() <= deadline_)
            return;
        if (!in_foreground_)
            kill(target(), SIGKILL);
        else if (!is_told_)
            std::cerr << "thrum stat: the program has not ended yet; a second Ctrl-C kills it, and the "
                         "report follows\n";
        is_told_ = true;
    }
    // Ctrl-Z is for the whole job: this process stops with it, and continues with it.
    void stopped(int signal) {
        measured_.stopped = true;
        if (!in_foreground_ || signal != SIGTSTP)
            return;
        raise(SIGSTOP);
        kill(pid_, SIGCONT);
    }
    // Ctrl-Z as this process has it: what is in the foreground has it from the terminal itself, or else is told here.
    void look_at_stop(Interrupts &interrupts) {
        if (in_foreground_) {
            bool by_terminal = false;
            if (interrupts.take_stop(&by_terminal) && !by_terminal)
                kill(pid_, SIGTSTP);
            return;
        }
        const double stopped = interrupts.suspend(target());
        if (stopped <= 0)
            return;
        measured_.stopped = true;
        deadline_ += stopped;
        limit_at_ += limit_at_ > 0 ? stopped : 0;
    }
    pid_t target() const { return in_foreground_ ? pid_ : -pid_; }

  private:
    pid_t pid_;
    bool in_foreground_;
    Measured &measured_;
    double deadline_ = 0, limit_at_;
    bool is_killed_ = false, is_told_ = false;
};

void take_usage(const rusage &usage, Measured &measured) {
    measured.user = seconds_of(usage.ru_utime);
    measured.system = seconds_of(usage.ru_stime);
    measured.voluntary = static_cast<std::uint64_t>(usage.ru_nvcsw);
    measured.involuntary = static_cast<std::uint64_t>(usage.ru_nivcsw);
    measured.faults_major = static_cast<std::uint64_t>(usage.ru_majflt);
}

// It is still there to be waited for. `leash` is told where it has stopped.
bool has_ended(pid_t pid, Leash &leash) {
    siginfo_t info = {}, taken = {};
    const auto id = static_cast<id_t>(pid);
    if (waitid(P_PID, id, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0)
        throw failed("cannot wait for the program");
    if (info.si_pid != pid || info.si_code != CLD_STOPPED)
        return info.si_pid == pid;
    waitid(P_PID, id, &taken, WSTOPPED | WNOHANG); // nothing, where it has just ended
    leash.stopped(info.si_status);
    return false;
}

// What it used itself, which rusage does not tell apart from its children's, is in /proc as long as nothing has waited for it.
void take_shares(pid_t pid, Measured &measured) {
    const auto stat = process::stat(pid);
    if (!stat)
        return;
    measured.own_cpu = stat->cpu();
    measured.children_cpu = stat->waited_cpu;
}

void wait_for(Child &child, double time_limit, const Streams &streams, Clockwork &clockwork,
              Interrupts &interrupts, Measured &measured) {
    Leash leash(child.pid(), streams.in_foreground(), time_limit, measured);
    while (!has_ended(child.pid(), leash)) {
        const double left = clockwork.turn();
        if (interrupts.wait(left)) {
            clockwork.interrupted();
            leash.interrupted(interrupts);
        }
        leash.look_at_stop(interrupts);
        leash.look_at_clock();
    }
    measured.wall = clockwork.elapsed();
    take_shares(child.pid(), measured);
    // A run that is over before the first regular look may have waited for a CPU most of its time.
    clockwork.threads().look();
    rusage usage = {};
    if (wait4(child.pid(), &measured.status, 0, &usage) < 0)
        throw failed("cannot wait for the program");
    if (interrupts.wait(0)) // of which it has ended, perhaps: it is no end of its own
        measured.incomplete = true;
    child.ended();
    take_usage(usage, measured);
    if (streams.in_foreground())
        return;
    measured.left_behind = kill(leash.target(), 0) == 0 && !measured.incomplete;
    if (measured.incomplete || measured.timed_out)
        kill(leash.target(), SIGKILL); // those of its children that did not end with it
}

} // namespace

// The kernel divides a time by the ticks that it saw in each mode: of a short program all may count as user time.
void leave_out_cpu(double seconds, Measured &measured) {
    const double system = std::min(seconds, measured.system);
    measured.system -= system;
    measured.user = std::max(0.0, measured.user - (seconds - system));
}

// --- threads -------------------------------------------------------------------------------------------

// In small parts, for more may take all the time that there is. The first thread is always looked at.
void ThreadWatch::look() {
    constexpr std::size_t kIds = 1024;
    const double begin = thread_cpu_time();
    const std::string folder = "/proc/" + std::to_string(pid_) + "/task";
    const Descriptor tasks(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::optional<std::size_t> count = tasks.is_open() ? count_ids(tasks.get()) : std::nullopt;
    if (!count)
        return;
    most_ = std::max(most_, static_cast<unsigned>(*count));
    while (read_ids(tasks.get(), part_, kIds))
        for (const pid_t id : part_) {
            look_at(folder, id);
            if (thread_cpu_time() - begin > budget_)
                return;
        }
}

// schedstat: "RUN_NS DELAY_NS SLICES".
void ThreadWatch::look_at(const std::string &folder, pid_t thread) {
    std::ifstream file(folder + "/" + std::to_string(thread) + "/schedstat");
    std::uint64_t run, delay;
    if (file >> run >> delay)
        delay_ns_[thread] = delay;
}

double ThreadWatch::run_delay() const {
    std::uint64_t sum = 0;
    for (const auto &[thread, delay] : delay_ns_) {
        const auto before = before_ns_.find(thread);
        sum += delay - (before == before_ns_.end() ? 0 : std::min(before->second, delay));
    }
    return static_cast<double>(sum) * 1e-9;
}

void ThreadWatch::leave_out_what_was() {
    before_ns_ = delay_ns_;
}

// --- runs ----------------------------------------------------------------------------------------------

Measured run(const Launch &launch, const Streams &streams, const std::vector<Layer *> &layers,
             Interrupts &interrupts, const std::function<void()> &on_tick) {
    Measured measured;
    const std::vector<std::string> environment = environment_of(launch, layers);
    Child child(launch, streams, environment, interrupts);
    child.wait_until_ready();
    for (Layer *layer : layers)
        layer->forked(child.pid());
    const Moment before = moment_now();
    const double before_program = process_cpu(child.pid()).value_or(0);
    Clockwork clockwork(child.pid(), layers, on_tick);
    child.release();
    wait_for(child, launch.time_limit, streams, clockwork, interrupts, measured);
    leave_out_cpu(before_program, measured);
    measured.load = load_between(before, moment_now());
    measured.run_delay = clockwork.threads().run_delay();
    measured.most_threads = std::max(1U, clockwork.threads().most());
    return measured;
}

Measured watch(pid_t pid, double seconds, const std::vector<Layer *> &layers, Interrupts &interrupts,
               const std::function<void()> &on_tick) {
    Measured measured;
    std::optional<Account> before = account_of(pid);
    if (!before)
        throw process::unreadable(pid, ESRCH);
    const double took_from = seconds_now();
    take_switches(pid, *before);
    const double seldom = std::max(kTick, (seconds_now() - took_from) / kPart);
    Moment load_before = moment_now();
    Clockwork clockwork(pid, layers, on_tick);
    if (const std::optional<Account> now =
            account_of(pid)) // what it used meanwhile is not of the time that begins
        take_times(*now, *before);
    Account after = *before;
    double looked = 0, switches_at = seldom;
    while (clockwork.elapsed() < seconds && !measured.incomplete) {
        const double left = clockwork.turn();
        measured.incomplete = interrupts.wait(std::clamp(seconds - clockwork.elapsed(), 0.0, left));
        if (const double stopped = interrupts.suspend(0); stopped > 0) {
            measured.stopped = true;
            seconds += stopped;
        }
        if (kill(pid, 0) != 0 && errno == ESRCH)
            break;
        if (clockwork.elapsed() - looked < kTick)
            continue;
        looked = clockwork.elapsed();
        const std::optional<Account> now = account_of(pid);
        if (!now)
            break;
        take_times(*now, after);
        if (looked < switches_at)
            continue;
        take_switches(pid, after);
        switches_at = clockwork.elapsed() + seldom;
    }
    const std::optional<Account> last = account_of(pid);
    measured.wall = clockwork.elapsed();
    if (last) {
        take_times(*last, after);
        take_switches(pid, after);
    }
    take_difference(*before, after, measured);
    measured.most_threads = std::max(1U, clockwork.threads().most());
    leave_out_late_ticks(measured.most_threads, measured);
    measured.own_cpu = measured.user + measured.system;
    Moment load_after = moment_now();
    load_after.own += measured.user + measured.system; // the process is no child, but no stranger either
    measured.load = load_between(load_before, load_after);
    measured.run_delay = clockwork.threads().run_delay();
    return measured;
}

} // namespace thrum::stat
