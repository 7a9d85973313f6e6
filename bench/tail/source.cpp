// SPDX-License-Identifier: Apache-2.0
//
// See source.hpp.
#include "source.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "tools/words.hpp"
#include "work.hpp"

namespace tail {

namespace {

std::string error_text() {
    return std::strerror(errno);
}

// --- the server ---------------------------------------------------------------------------------------------

// The two ends of a pipe, for this process and for the server.
struct Pipe {
    int for_reading, for_writing;
    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            throw bench::Failure("cannot create a pipe: " + error_text());
        for_reading = ends[0];
        for_writing = ends[1];
    }
};

class Server {
  public:
    Server(const std::vector<std::string> &command, const bench::Environment &environment);
    ~Server();
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    void send(const Order *orders, std::size_t count); // no more than kAtOnce
    void send_end();
    void read(void *data, std::size_t size);
    void wait(); // for its end; it is a failure if that is not with success

    // A write of so much to a pipe is whole (PIPE_BUF).
    static constexpr std::size_t kAtOnce = 4096 / sizeof(Order);

  private:
    std::string name_;
    pid_t pid_ = 0;
    int to_ = -1, from_ = -1;
};

Server::Server(const std::vector<std::string> &command, const bench::Environment &environment)
    : name_(command[0]) {
    constexpr int kRoomy = 1 << 20; // a server that is busy must not hold up the source
    signal(SIGPIPE, SIG_IGN);       // one that has died is told by write()
    const Pipe orders, answers;
    fcntl(orders.for_writing, F_SETPIPE_SZ, kRoomy);
    const std::vector<char *> words = thrum::pointers(command),
                              variables = thrum::pointers(environment.variables());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, orders.for_reading, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answers.for_writing, STDOUT_FILENO);
    const int error = posix_spawn(&pid_, words[0], &actions, nullptr, words.data(), variables.data());
    posix_spawn_file_actions_destroy(&actions);
    close(orders.for_reading);
    close(answers.for_writing);
    to_ = orders.for_writing;
    from_ = answers.for_reading;
    if (error != 0) {
        close(to_);
        close(from_);
        throw bench::Failure("cannot start " + name_ + ": " + std::strerror(error));
    }
}

Server::~Server() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    send_end();
    close(from_);
}

void Server::send(const Order *orders, std::size_t count) {
    const auto *bytes = reinterpret_cast<const char *>(orders);
    for (std::size_t left = count * sizeof *orders; left > 0;) {
        const ssize_t length = write(to_, bytes, left);
        if (length < 0 && errno != EINTR)
            throw bench::Failure(name_ + " takes no requests: " + error_text());
        bytes += length > 0 ? length : 0;
        left -= length > 0 ? static_cast<std::size_t>(length) : 0;
    }
}

void Server::send_end() {
    if (to_ >= 0)
        close(to_);
    to_ = -1;
}

void Server::read(void *data, std::size_t size) {
    auto *bytes = static_cast<char *>(data);
    while (size > 0) {
        const ssize_t length = ::read(from_, bytes, size);
        if (length == 0) {
            wait(); // says what it died of
            throw bench::Failure(name_ + " has ended without its answers");
        }
        if (length < 0 && errno != EINTR)
            throw bench::Failure("cannot read from " + name_ + ": " + error_text());
        bytes += length > 0 ? length : 0;
        size -= length > 0 ? static_cast<std::size_t>(length) : 0;
    }
}

void Server::wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    if (status != 0)
        throw bench::Failure(
            name_ + (WIFSIGNALED(status) ? " has died of signal " + std::to_string(WTERMSIG(status))
                                         : " has failed with status " + std::to_string(WEXITSTATUS(status))));
}

// --- the source ---------------------------------------------------------------------------------------------

void sleep_until(std::uint64_t moment) {
    constexpr std::uint64_t kSecond = 1000000000;
    const timespec time = {static_cast<time_t>(moment / kSecond), static_cast<long>(moment % kSecond)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time,
                    nullptr); // a signal: the caller looks at the clock
}

// All that are due, then the next, in the order of their moments.
void send_in_time(const std::vector<Order> &orders, Server *server, std::vector<double> *late_us) {
    for (std::size_t first = 0; first < orders.size();) {
        const std::uint64_t now = now_ns();
        std::size_t end = first;
        for (; end < orders.size() && end - first < Server::kAtOnce && orders[end].arrival_ns <= now; end++)
            late_us->push_back(static_cast<double>(now - orders[end].arrival_ns) / 1e3);
        if (end > first)
            server->send(&orders[first], end - first);
        else
            sleep_until(orders[first].arrival_ns);
        first = end;
    }
}

// CPU time that the machine has used, by /proc/stat, which counts in ticks of some milliseconds.
double busy_seconds() {
    std::ifstream file("/proc/stat");
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, disk = 0, interrupts = 0, soft = 0, stolen = 0;
    if (!(file >> name >> user >> nice >> system >> idle >> disk >> interrupts >> soft >> stolen))
        throw bench::Failure("/proc/stat cannot be read");
    return (user + nice + system + interrupts + soft + stolen) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_seconds() {
    return static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)) / 1e9;
}

// All CPU time since its beginning that is not this process's.
class Others {
  public:
    double share(double server_seconds) const {
        const double took = busy_seconds() - busy_ - (own_seconds() - own_) - server_seconds;
        const double wall = static_cast<double>(now_ns() - begun_) / 1e9;
        return std::max(took / wall / static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), 0.0);
    }

  private:
    std::uint64_t begun_ = now_ns();
    double busy_ = busy_seconds(), own_ = own_seconds();
};

} // namespace

Outcome drive(const std::vector<std::string> &command, const bench::Environment &environment,
              std::vector<Order> orders, std::size_t answers) {
    constexpr std::uint64_t kStart = 5000000; // ns, from the server's letter to the beginning
    Outcome outcome{};
    Server server(command, environment);
    char letter = 0;
    server.read(&letter, 1);
    outcome.available = letter == kReady;
    if (!outcome.available) {
        server.wait();
        return outcome;
    }
    outcome.begun_ns = now_ns() + kStart;
    for (Order &order : orders)
        order.arrival_ns += outcome.begun_ns;
    outcome.orders = std::move(orders);
    outcome.late_us.reserve(outcome.orders.size());
    prctl(PR_SET_TIMERSLACK, 1);
    const Others others;
    send_in_time(outcome.orders, &server, &outcome.late_us);
    server.send_end();
    server.read(&outcome.summary, sizeof outcome.summary);
    outcome.others = others.share(static_cast<double>(outcome.summary.cpu_ns) / 1e9);
    outcome.answers.resize(answers);
    server.read(outcome.answers.data(), answers * sizeof(Answer));
    server.wait();
    return outcome;
}

} // namespace tail
