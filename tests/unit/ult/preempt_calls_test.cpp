// SPDX-License-Identifier: Apache-2.0
//
// Calls that wait in the kernel, each in a thread whose worker others want: those of signal(7) that SA_RESTART has made again are,
// and do what they are for; the others end with EINTR; by thrum_blocking() none does (thrum-preemption(7), "System calls").
//
// What ends the wait is another thread on the only worker: where the one that waits were not preempted, or its call not made
// again, the test would hang. Not here, of the list: getrandom, which waits only until the kernel has what it makes random numbers
// of. That is once, while the machine starts, and nothing that a test could do makes it wait again.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <tuple>

#include "preempt.hpp"

namespace {

using Mode = unsigned;

// One call, with all that it takes. It is made once.
struct Call {
    std::function<int()>
        make; // 0: it did what it is for; else an error number, -1 for what is neither. Empty: the
              // system has no such call
    std::function<void()> end; // lets it come to that; empty: it does so by itself
};

// Which thread makes it: the ULT itself, where it is interrupted, or thrum_blocking()'s.
enum class By { ITSELF, ANOTHER };

struct Kind {
    const char *name;
    Call (*prepare)(By by);
};

int error_of(bool failed) {
    return failed ? errno : 0;
}

// For calls whose result is `expected`.
int error_unless(ssize_t expected, ssize_t result) {
    return result == expected ? 0 : result < 0 ? errno : -1;
}

// As long as the test may take, but for calls that are not interrupted.
timespec a_while(By by) {
    return by == By::ITSELF ? timespec{1000, 0} : timespec{0, 20'000'000};
}

// The moment when it is over.
timespec in_a_while(By by, clockid_t clock = CLOCK_REALTIME) {
    constexpr long kSecond = 1'000'000'000;
    const timespec span = a_while(by);
    timespec moment{};
    clock_gettime(clock, &moment);
    moment.tv_nsec += span.tv_nsec;
    moment.tv_sec += span.tv_sec + moment.tv_nsec / kSecond;
    moment.tv_nsec %= kSecond;
    return moment;
}

// --- files ------------------------------------------------------------------------------------------------

class File {
  public:
    explicit File(int file) : file_(file) {}
    File(const File &) = delete;
    ~File() {
        if (file_ >= 0)
            close(file_);
    }
    operator int() const { return file_; }

  private:
    int file_;
};

using SharedFile = std::shared_ptr<File>;

SharedFile shared(int file) {
    return std::make_shared<File>(file);
}

// A place for files, which goes with all that is there.
class Folder {
  public:
    Folder() { EXPECT_NE(mkdtemp(name_), nullptr); }
    Folder(const Folder &) = delete;
    ~Folder() {
        unlink((path() + "/file").c_str());
        EXPECT_EQ(rmdir(name_), 0);
    }
    std::string path() const { return name_; }
    std::string file() const { return path() + "/file"; }

  private:
    char name_[32] = "/tmp/thrum-calls-XXXXXX";
};

// Two ends of a pipe, or of a connection.
struct Ends {
    SharedFile in, out;
};

Ends a_pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    return {shared(ends[0]), shared(ends[1])};
}

Ends a_connection() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return {shared(ends[0]), shared(ends[1])};
}

// Until nothing goes in any more.
void fill(const Ends &ends) {
    const std::array<char, 4096> some{};
    fcntl(*ends.out, F_SETFL, O_NONBLOCK);
    while (write(*ends.out, some.data(), some.size()) > 0 || write(*ends.out, some.data(), 1) > 0) {
    }
    fcntl(*ends.out, F_SETFL, 0);
}

void drain(const Ends &ends) {
    std::array<char, 4096> some{};
    fcntl(*ends.in, F_SETFL, O_NONBLOCK);
    while (read(*ends.in, some.data(), some.size()) > 0) {
    }
}

// `make` waits for a byte at ends.in.
Call for_input(Ends ends, std::function<int(int)> make) {
    return {[=] { return make(*ends.in); }, [=] { EXPECT_EQ(write(*ends.out, "x", 1), 1); }};
}

// ... for room at ends.out.
Call for_output(const Ends &ends, std::function<int(int)> make) {
    fill(ends);
    return {[=] { return make(*ends.out); }, [=] { drain(ends); }};
}

// --- ... of files and pipes -------------------------------------------------------------------------------

Call read_(By) {
    return for_input(a_pipe(), [](int file) {
        char byte = 0;
        return error_unless(1, read(file, &byte, 1));
    });
}

Call readv_(By) {
    return for_input(a_pipe(), [](int file) {
        char byte = 0;
        const iovec part{&byte, 1};
        return error_unless(1, readv(file, &part, 1));
    });
}

Call write_(By) {
    return for_output(a_pipe(), [](int file) { return error_unless(1, write(file, "x", 1)); });
}

Call writev_(By) {
    return for_output(a_pipe(), [](int file) {
        char byte = 'x';
        const iovec part{&byte, 1};
        return error_unless(1, writev(file, &part, 1));
    });
}

// It has no reader while the call is about to be made again, so opening the other end must not need one.
Call open_(By) {
    auto folder = std::make_shared<Folder>();
    EXPECT_EQ(mkfifo(folder->file().c_str(), 0600), 0);
    auto other = std::make_shared<SharedFile>();
    return {[=] {
                const File file(open(folder->file().c_str(), O_RDONLY | O_CLOEXEC));
                return error_of(file < 0);
            },
            [=] { *other = shared(open(folder->file().c_str(), O_RDWR | O_CLOEXEC)); }};
}

Call inotify_(By) {
    auto folder = std::make_shared<Folder>();
    const SharedFile watch = shared(inotify_init1(IN_CLOEXEC));
    EXPECT_GE(inotify_add_watch(*watch, folder->path().c_str(), IN_CREATE), 0);
    return {[=] {
                alignas(inotify_event) std::array<char, 512> events{};
                return error_of(read(*watch, events.data(), events.size()) <= 0);
            },
            [=] { const File made(open(folder->file().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)); }};
}

// --- ... of terminals -------------------------------------------------------------------------------------

// A terminal, through which bytes go as they are, and the end of it that belongs to the program that shows the
// output.
struct Terminal {
    SharedFile itself, shown;
};

Terminal a_terminal() {
    const SharedFile shown = shared(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 64> name{};
    if (*shown < 0 || grantpt(*shown) != 0 || unlockpt(*shown) != 0 ||
        ptsname_r(*shown, name.data(), name.size()) != 0)
        return {};
    const SharedFile itself = shared(open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios settings{};
    if (*itself < 0 || tcgetattr(*itself, &settings) != 0)
        return {};
    cfmakeraw(&settings);
    EXPECT_EQ(tcsetattr(*itself, TCSANOW, &settings), 0);
    return {itself, shown};
}

Call read_of_terminal(By) {
    const Terminal terminal = a_terminal();
    if (terminal.itself == nullptr)
        return {};
    return for_input({terminal.itself, terminal.shown}, [](int file) {
        char byte = 0;
        return error_unless(1, read(file, &byte, 1));
    });
}

// It is stopped, as by a user who presses Ctrl-S, and continued.
Call write_to_terminal(By) {
    const Terminal terminal = a_terminal();
    if (terminal.itself == nullptr)
        return {};
    EXPECT_EQ(tcflow(*terminal.itself, TCOOFF), 0);
    return {[=] { return error_unless(1, write(*terminal.itself, "x", 1)); },
            [=] { EXPECT_EQ(tcflow(*terminal.itself, TCOON), 0); }};
}

// A kernel thread of the program's that writes, which waits.
class Writer {
  public:
    explicit Writer(const SharedFile &file)
        : thread_([this, file] {
              self_ = static_cast<pid_t>(syscall(SYS_gettid));
              written_ = write(*file, "x", 1);
          }) {
        while (self_ == 0 || !is_asleep(self_))
            std::this_thread::yield();
    }
    Writer(const Writer &) = delete;
    ~Writer() {
        thread_.join();
        EXPECT_EQ(written_, 1);
    }

  private:
    std::atomic<pid_t> self_{0};
    ssize_t written_ = 0;
    std::thread thread_; // last
};

// Of those that a terminal without hardware has this one waits: it writes, for which it has to have its turn.
Call ioctl_of_terminal(By) {
    const Terminal terminal = a_terminal();
    if (terminal.itself == nullptr)
        return {};
    EXPECT_EQ(tcflow(*terminal.itself, TCOOFF), 0);
    auto writer = std::make_shared<Writer>(terminal.itself);
    return {[=, keep = writer] { return error_of(ioctl(*terminal.itself, TCXONC, TCIOFF) != 0); },
            [=] { EXPECT_EQ(tcflow(*terminal.itself, TCOON), 0); }};
}

// --- ... of locks of files --------------------------------------------------------------------------------

Call flock_(By) {
    auto folder = std::make_shared<Folder>();
    const auto opened = [&] {
        return shared(open(folder->file().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    };
    const SharedFile theirs = opened(), ours = opened();
    EXPECT_EQ(flock(*theirs, LOCK_EX), 0);
    return {[=, keep = folder] { return error_of(flock(*ours, LOCK_EX) != 0); },
            [=] { EXPECT_EQ(flock(*theirs, LOCK_UN), 0); }};
}

struct flock whole_file(short type) {
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

Call fcntl_ofd(By) {
    auto folder = std::make_shared<Folder>();
    const auto opened = [&] {
        return shared(open(folder->file().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    };
    const SharedFile theirs = opened(), ours = opened();
    struct flock held = whole_file(F_WRLCK);
    EXPECT_EQ(fcntl(*theirs, F_OFD_SETLK, &held), 0);
    return {[=, keep = folder] {
                struct flock wanted = whole_file(F_WRLCK);
                return error_of(fcntl(*ours, F_OFD_SETLKW, &wanted) != 0);
            },
            [=] {
                struct flock over = whole_file(F_UNLCK);
                EXPECT_EQ(fcntl(*theirs, F_OFD_SETLK, &over), 0);
            }};
}

// A child of fork that does `first`, and ends when end() is called.
class Child {
  public:
    explicit Child(const std::function<bool()> &first = [] { return true; })
        : begun_(a_pipe()), over_(a_pipe()), pid_(fork()) {
        char byte = 0;
        if (pid_ == 0) {
            alarm(60);
            const bool done = first();
            over_.out.reset();
            _exit(done && write(*begun_.out, "x", 1) == 1 && read(*over_.in, &byte, 1) == 1 ? 0 : 1);
        }
        EXPECT_EQ(read(*begun_.in, &byte, 1), 1);
    }
    Child(const Child &) = delete;
    ~Child() {
        if (!is_awaited_) {
            end();
            waitpid(pid_, nullptr, 0);
        }
    }
    void end() { EXPECT_EQ(write(*over_.out, "x", 1), 1); }
    // By `wait`, which returns whose end it has seen.
    int is_awaited(const std::function<pid_t(pid_t)> &wait) {
        const int error = error_unless(pid_, wait(pid_));
        is_awaited_ = error == 0;
        return error;
    }

  private:
    Ends begun_, over_;
    pid_t pid_;
    bool is_awaited_ = false;
};

// Such a lock is the process's, so another one has it.
Call fcntl_(By) {
    auto folder = std::make_shared<Folder>();
    const SharedFile file = shared(open(folder->file().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    auto child = std::make_shared<Child>([=] {
        struct flock held = whole_file(F_WRLCK);
        return fcntl(*file, F_SETLK, &held) == 0;
    });
    return {[=, keep = folder] {
                struct flock wanted = whole_file(F_WRLCK);
                return error_of(fcntl(*file, F_SETLKW, &wanted) != 0);
            },
            [=] { child->end(); }};
}

// --- ... of processes -------------------------------------------------------------------------------------

Call for_a_child(const std::function<pid_t(pid_t)> &wait) {
    auto child = std::make_shared<Child>();
    return {[=] { return child->is_awaited(wait); }, [=] { child->end(); }};
}

Call wait_(By) {
    return for_a_child([](pid_t) { return wait(nullptr); });
}

Call waitpid_(By) {
    return for_a_child([](pid_t child) { return waitpid(child, nullptr, 0); });
}

Call wait4_(By) {
    return for_a_child([](pid_t child) { return wait4(child, nullptr, 0, nullptr); });
}

Call waitid_(By) {
    return for_a_child([](pid_t child) {
        siginfo_t info = {};
        return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED) == 0 ? info.si_pid : -1;
    });
}

// --- ... of sockets ---------------------------------------------------------------------------------------

// With a timeout each ends with EINTR.
using IsTimed = bool;

void be_timed(int socket, int option) {
    const timeval limit{1000, 0};
    EXPECT_EQ(setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit), 0);
}

// Names that need no file.
struct Name {
    sockaddr_un address = {};
    socklen_t size = sizeof(sa_family_t); // the kernel chooses one
};

const sockaddr *plain(const Name &name) {
    return reinterpret_cast<const sockaddr *>(&name.address);
}

int a_socket() {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

// Has room for one connection that is not accepted yet, and no more.
class Listener {
  public:
    Listener() {
        name_.address.sun_family = AF_UNIX;
        EXPECT_EQ(bind(socket_, plain(name_), name_.size), 0);
        name_.size = sizeof name_.address;
        EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr *>(&name_.address), &name_.size), 0);
        EXPECT_EQ(listen(socket_, 0), 0);
    }
    const File &socket() const { return socket_; }
    int connects(int to_be) const { return error_of(connect(to_be, plain(name_), name_.size) != 0); }
    int accepts() const {
        const File accepted(accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
        return error_of(accepted < 0);
    }

  private:
    File socket_{a_socket()};
    Name name_;
};

template <IsTimed is_timed>
Call accept_(By) {
    auto listener = std::make_shared<Listener>();
    const SharedFile other = shared(a_socket());
    if (is_timed)
        be_timed(listener->socket(), SO_RCVTIMEO);
    return {[=] { return listener->accepts(); }, [=] { EXPECT_EQ(listener->connects(*other), 0); }};
}

template <IsTimed is_timed>
Call connect_(By) {
    auto listener = std::make_shared<Listener>();
    const SharedFile first = shared(a_socket()), second = shared(a_socket());
    EXPECT_EQ(listener->connects(*first), 0);
    if (is_timed)
        be_timed(*second, SO_SNDTIMEO);
    return {[=, keep = first] { return listener->connects(*second); },
            [=] { EXPECT_EQ(listener->accepts(), 0); }};
}

enum class Receives { RECV, RECVFROM, RECVMSG, RECVMMSG, RECVMMSG_UNTIL, READ, READV };

ssize_t receive(Receives how, int socket) {
    char byte = 0;
    iovec part{&byte, 1};
    mmsghdr message = {};
    message.msg_hdr.msg_iov = &part;
    message.msg_hdr.msg_iovlen = 1;
    timespec limit{1000, 0};
    switch (how) {
    case Receives::RECV: return recv(socket, &byte, 1, 0);
    case Receives::RECVFROM: return recvfrom(socket, &byte, 1, 0, nullptr, nullptr);
    case Receives::RECVMSG: return recvmsg(socket, &message.msg_hdr, 0);
    case Receives::RECVMMSG: return recvmmsg(socket, &message, 1, 0, nullptr);
    case Receives::RECVMMSG_UNTIL: return recvmmsg(socket, &message, 1, 0, &limit);
    case Receives::READ: return read(socket, &byte, 1);
    case Receives::READV: return readv(socket, &part, 1);
    }
    return -1;
}

template <Receives how, IsTimed is_timed>
Call receive_(By) {
    const Ends ends = a_connection();
    if (is_timed)
        be_timed(*ends.in, SO_RCVTIMEO);
    return for_input(ends, [](int socket) { return error_unless(1, receive(how, socket)); });
}

enum class Sends { SEND, SENDTO, SENDMSG, WRITE, WRITEV };

ssize_t send_one(Sends how, int socket) {
    char byte = 'x';
    iovec part{&byte, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    switch (how) {
    case Sends::SEND: return send(socket, &byte, 1, 0);
    case Sends::SENDTO: return sendto(socket, &byte, 1, 0, nullptr, 0);
    case Sends::SENDMSG: return sendmsg(socket, &message, 0);
    case Sends::WRITE: return write(socket, &byte, 1);
    case Sends::WRITEV: return writev(socket, &part, 1);
    }
    return -1;
}

template <Sends how, IsTimed is_timed>
Call send_(By) {
    const Ends ends = a_connection();
    if (is_timed)
        be_timed(*ends.out, SO_SNDTIMEO);
    return for_output(ends, [](int socket) { return error_unless(1, send_one(how, socket)); });
}

// --- ... of queues of messages ----------------------------------------------------------------------------

// For one message.
class Messages {
  public:
    Messages() {
        const std::string name = "/thrum-calls-" + std::to_string(getpid());
        mq_attr one = {};
        one.mq_maxmsg = one.mq_msgsize = 1;
        queue_ = mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600, &one);
        mq_unlink(name.c_str());
    }
    Messages(const Messages &) = delete;
    ~Messages() { mq_close(queue_); }
    bool is_there() const { return queue_ >= 0; }
    int receives(const timespec *until = nullptr) {
        char byte = 0;
        return error_unless(1, until != nullptr ? mq_timedreceive(queue_, &byte, 1, nullptr, until)
                                                : mq_receive(queue_, &byte, 1, nullptr));
    }
    int sends(const timespec *until = nullptr) {
        return error_of(
            (until != nullptr ? mq_timedsend(queue_, "x", 1, 0, until) : mq_send(queue_, "x", 1, 0)) != 0);
    }

  private:
    mqd_t queue_;
};

template <IsTimed is_timed>
Call mq_receive_(By) {
    auto messages = std::make_shared<Messages>();
    const timespec until = in_a_while(By::ITSELF);
    if (!messages->is_there())
        return {};
    return {[=] { return messages->receives(is_timed ? &until : nullptr); },
            [=] { EXPECT_EQ(messages->sends(), 0); }};
}

template <IsTimed is_timed>
Call mq_send_(By) {
    auto messages = std::make_shared<Messages>();
    const timespec until = in_a_while(By::ITSELF);
    if (!messages->is_there())
        return {};
    EXPECT_EQ(messages->sends(), 0);
    return {[=] { return messages->sends(is_timed ? &until : nullptr); },
            [=] { EXPECT_EQ(messages->receives(), 0); }};
}

// System V's: a queue of messages, or a semaphore.
class OfSystemV {
  public:
    enum What { QUEUE, SEMAPHORE };
    explicit OfSystemV(What what)
        : what_(what), id_(what == QUEUE ? msgget(IPC_PRIVATE, 0600) : semget(IPC_PRIVATE, 1, 0600)) {}
    OfSystemV(const OfSystemV &) = delete;
    ~OfSystemV() {
        if (id_ >= 0)
            what_ == QUEUE ? msgctl(id_, IPC_RMID, nullptr) : semctl(id_, 0, IPC_RMID);
    }
    int id() const { return id_; }
    int receives(int flags = 0) const {
        Message message{};
        return error_unless(kSize, msgrcv(id_, &message, kSize, 0, flags));
    }
    int sends(int flags = 0) const {
        const Message message{1, {}};
        return error_of(msgsnd(id_, &message, kSize, flags) != 0);
    }
    int changes(short by, const timespec *limit = nullptr) const {
        sembuf change = {0, by, 0};
        return error_of((limit != nullptr ? semtimedop(id_, &change, 1, limit) : semop(id_, &change, 1)) !=
                        0);
    }

  private:
    enum { kSize = 1024 };
    struct Message {
        long kind;
        char text[kSize];
    };
    What what_;
    int id_;
};

Call msgrcv_(By) {
    auto queue = std::make_shared<OfSystemV>(OfSystemV::QUEUE);
    if (queue->id() < 0)
        return {};
    return {[=] { return queue->receives(); }, [=] { EXPECT_EQ(queue->sends(), 0); }};
}

Call msgsnd_(By) {
    auto queue = std::make_shared<OfSystemV>(OfSystemV::QUEUE);
    if (queue->id() < 0)
        return {};
    while (queue->sends(IPC_NOWAIT) == 0) {
    }
    return {[=] { return queue->sends(); }, [=] { EXPECT_EQ(queue->receives(), 0); }};
}

template <IsTimed is_timed>
Call semop_(By) {
    auto semaphore = std::make_shared<OfSystemV>(OfSystemV::SEMAPHORE);
    if (semaphore->id() < 0)
        return {};
    const timespec limit{1000, 0};
    return {[=] { return semaphore->changes(-1, is_timed ? &limit : nullptr); },
            [=] { EXPECT_EQ(semaphore->changes(1), 0); }};
}

// --- ... of futexes, and what libc makes of them ----------------------------------------------------------

// Woken before the call is made again it is no longer what it was.
template <int operation, IsTimed is_timed>
Call futex_(By) {
    auto word = std::make_shared<std::atomic<uint32_t>>(0);
    return {[=] {
                const timespec limit = operation == FUTEX_WAIT_BITSET
                                           ? in_a_while(By::ITSELF, CLOCK_MONOTONIC)
                                           : a_while(By::ITSELF);
                const long result = syscall(SYS_futex, word.get(), operation | FUTEX_PRIVATE_FLAG, 0,
                                            is_timed ? &limit : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
                return result < 0 && errno != EAGAIN ? errno : *word == 1 ? 0 : -1;
            },
            [=] {
                *word = 1;
                syscall(SYS_futex, word.get(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
            }};
}

template <IsTimed is_timed>
Call sem_wait_(By) {
    std::shared_ptr<sem_t> sem(new sem_t, [](sem_t *old) {
        sem_destroy(old);
        delete old;
    });
    const timespec until = in_a_while(By::ITSELF);
    EXPECT_EQ(sem_init(sem.get(), 0, 0), 0);
    return {
        [=] { return error_of((is_timed ? sem_timedwait(sem.get(), &until) : sem_wait(sem.get())) != 0); },
        [=] { EXPECT_EQ(sem_post(sem.get()), 0); }};
}

// What a kernel thread of the program's has until it is told to let go.
class Holder {
  public:
    Holder(const std::function<void()> &take, const std::function<void()> &let_go)
        : thread_([=] {
              take();
              held_ = true;
              sem_wait(&told_);
              let_go();
          }) {
        while (!held_)
            std::this_thread::yield();
    }
    Holder(const Holder &) = delete;
    ~Holder() {
        thread_.join();
        sem_destroy(&told_);
    }
    void tell() { sem_post(&told_); }

  private:
    std::atomic<bool> held_{false};
    sem_t told_ = [] {
        sem_t sem;
        sem_init(&sem, 0, 0);
        return sem;
    }();
    std::thread thread_; // last
};

template <IsTimed is_timed>
Call mutex_(By) {
    auto mutex = std::make_shared<pthread_mutex_t>();
    *mutex = PTHREAD_MUTEX_INITIALIZER;
    auto holder = std::make_shared<Holder>([=] { pthread_mutex_lock(mutex.get()); },
                                           [=] { pthread_mutex_unlock(mutex.get()); });
    const timespec until = in_a_while(By::ITSELF);
    return {[=] {
                const int error =
                    is_timed ? pthread_mutex_timedlock(mutex.get(), &until) : pthread_mutex_lock(mutex.get());
                return error == 0 ? pthread_mutex_unlock(mutex.get()) : error;
            },
            [=] { holder->tell(); }};
}

template <bool writes>
Call rwlock_(By) {
    auto lock = std::make_shared<pthread_rwlock_t>();
    *lock = PTHREAD_RWLOCK_INITIALIZER;
    auto holder = std::make_shared<Holder>([=] { pthread_rwlock_wrlock(lock.get()); },
                                           [=] { pthread_rwlock_unlock(lock.get()); });
    return {[=] {
                const int error =
                    writes ? pthread_rwlock_wrlock(lock.get()) : pthread_rwlock_rdlock(lock.get());
                return error == 0 ? pthread_rwlock_unlock(lock.get()) : error;
            },
            [=] { holder->tell(); }};
}

struct Condition {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    bool is_so = false;
};

// It may wake up without reason.
template <IsTimed is_timed>
Call cond_(By) {
    auto condition = std::make_shared<Condition>();
    const timespec until = in_a_while(By::ITSELF);
    return {[=] {
                int error = 0;
                pthread_mutex_lock(&condition->mutex);
                while (error == 0 && !condition->is_so)
                    error = is_timed ? pthread_cond_timedwait(&condition->cond, &condition->mutex, &until)
                                     : pthread_cond_wait(&condition->cond, &condition->mutex);
                pthread_mutex_unlock(&condition->mutex);
                return error;
            },
            [=] {
                pthread_mutex_lock(&condition->mutex);
                condition->is_so = true;
                pthread_cond_signal(&condition->cond);
                pthread_mutex_unlock(&condition->mutex);
            }};
}

Call join_(By) {
    auto sem = std::make_shared<sem_t>();
    EXPECT_EQ(sem_init(sem.get(), 0, 0), 0);
    pthread_t thread{};
    const auto wait = [](void *arg) -> void * {
        sem_wait(static_cast<sem_t *>(arg));
        return arg;
    };
    EXPECT_EQ(pthread_create(&thread, nullptr, wait, sem.get()), 0);
    return {[=] {
                void *result = nullptr;
                const int error = pthread_join(thread, &result);
                return error == 0 && result != sem.get() ? -1 : error;
            },
            [=] { sem_post(sem.get()); }};
}

// --- ... that wait for signals ----------------------------------------------------------------------------

Call pause_(By) {
    return {[] { return error_of(pause() != 0); }, nullptr};
}

Call sigsuspend_(By) {
    return {[] {
                sigset_t none;
                sigemptyset(&none);
                return error_of(sigsuspend(&none) != 0);
            },
            nullptr};
}

// One that is blocked there, and sent to the kernel thread alone that waits.
template <IsTimed is_timed>
Call sigwaitinfo_(By) {
    auto where = std::make_shared<std::atomic<pid_t>>(0);
    return {[=] {
                sigset_t wanted;
                sigemptyset(&wanted);
                sigaddset(&wanted, SIGUSR2);
                const timespec limit{1000, 0};
                *where = static_cast<pid_t>(syscall(SYS_gettid));
                return error_unless(SIGUSR2, is_timed ? sigtimedwait(&wanted, nullptr, &limit)
                                                      : sigwaitinfo(&wanted, nullptr));
            },
            [=] {
                while (*where == 0) {
                }
                EXPECT_EQ(syscall(SYS_tgkill, getpid(), where->load(), SIGUSR2), 0);
            }};
}

// --- ... that wait for many files -------------------------------------------------------------------------

int poll_one(int file) {
    pollfd one{file, POLLIN, 0};
    return error_unless(1, poll(&one, 1, -1));
}

int ppoll_one(int file) {
    pollfd one{file, POLLIN, 0};
    sigset_t none;
    sigemptyset(&none);
    return error_unless(1, ppoll(&one, 1, nullptr, &none));
}

int select_one(int file) {
    fd_set one;
    FD_ZERO(&one);
    FD_SET(file, &one);
    return error_unless(1, select(file + 1, &one, nullptr, nullptr, nullptr));
}

int pselect_one(int file) {
    fd_set one;
    FD_ZERO(&one);
    FD_SET(file, &one);
    sigset_t none;
    sigemptyset(&none);
    return error_unless(1, pselect(file + 1, &one, nullptr, nullptr, nullptr, &none));
}

int epoll_one(int file, const sigset_t *mask) {
    const File epoll(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event = {};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event) != 0)
        return -1;
    return error_unless(1, mask != nullptr ? epoll_pwait(epoll, &event, 1, -1, mask)
                                           : epoll_wait(epoll, &event, 1, -1));
}

int epoll_wait_one(int file) {
    return epoll_one(file, nullptr);
}

int epoll_pwait_one(int file) {
    sigset_t none;
    sigemptyset(&none);
    return epoll_one(file, &none);
}

template <int (*wait)(int)>
Call for_files(By) {
    return for_input(a_pipe(), wait);
}

// As a system call: older C libraries have none.
Call epoll_pwait2_(By) {
    constexpr long kEpollPwait2 = 441;
    if (syscall(kEpollPwait2, -1, nullptr, 0, nullptr, nullptr, 0) != 0 && errno == ENOSYS)
        return {};
    return for_input(a_pipe(), [](int file) {
        const File epoll(epoll_create1(EPOLL_CLOEXEC));
        const timespec limit{1000, 0};
        epoll_event event = {};
        event.events = EPOLLIN;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event) != 0)
            return -1;
        return error_unless(1, syscall(kEpollPwait2, static_cast<int>(epoll), &event, 1, &limit, nullptr, 0));
    });
}

// What io_uring_wait_cqe() of liburing does: a ring with one request, to be told when the pipe has something.
Call io_uring_enter_(By) {
    constexpr std::size_t kSize = 4096;
    const Ends ends = a_pipe();
    io_uring_params params = {};
    const SharedFile ring = shared(static_cast<int>(syscall(SYS_io_uring_setup, 1, &params)));
    if (*ring < 0)
        return {};
    const auto map = [&](std::size_t size, off_t what) {
        return static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, *ring, what));
    };
    char *const queue = map(kSize, IORING_OFF_SQ_RING);
    io_uring_sqe *const request = reinterpret_cast<io_uring_sqe *>(map(kSize, IORING_OFF_SQES));
    *request = {};
    request->opcode = IORING_OP_POLL_ADD;
    request->fd = *ends.in;
    request->poll32_events = POLLIN;
    reinterpret_cast<uint32_t *>(queue + params.sq_off.array)[0] = 0;
    __atomic_store_n(reinterpret_cast<uint32_t *>(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    munmap(request, kSize);
    munmap(queue, kSize);
    if (syscall(SYS_io_uring_enter, static_cast<int>(*ring), 1, 0, 0, nullptr, 0) != 1)
        return {};
    return for_input(ends, [ring](int) {
        return error_unless(0, syscall(SYS_io_uring_enter, static_cast<int>(*ring), 0, 1,
                                       IORING_ENTER_GETEVENTS, nullptr, 0));
    });
}

// A context of its own, with one request: to be told when the pipe has something.
Call io_getevents_(By) {
    const Ends ends = a_pipe();
    auto context = std::shared_ptr<aio_context_t>(new aio_context_t(0), [](aio_context_t *old) {
        syscall(SYS_io_destroy, *old);
        delete old;
    });
    iocb request = {};
    request.aio_lio_opcode = IOCB_CMD_POLL;
    request.aio_fildes = static_cast<uint32_t>(static_cast<int>(*ends.in));
    request.aio_buf = POLLIN;
    iocb *requests = &request;
    if (syscall(SYS_io_setup, 1, context.get()) != 0 || syscall(SYS_io_submit, *context, 1, &requests) != 1)
        return {};
    return for_input(ends, [=](int) {
        io_event event = {};
        return error_unless(1, syscall(SYS_io_getevents, *context, 1, 1, &event, nullptr));
    });
}

// --- ... that sleep ---------------------------------------------------------------------------------------

Call nanosleep_(By by) {
    return {[by] {
                const timespec span = a_while(by);
                timespec left = span;
                const int error = error_of(nanosleep(&span, &left) != 0);
                return error == EINTR && left.tv_sec > span.tv_sec ? -1 : error;
            },
            nullptr};
}

template <int flags>
Call clock_nanosleep_(By by) {
    return {[by] {
                const timespec span = flags == TIMER_ABSTIME ? in_a_while(by, CLOCK_MONOTONIC) : a_while(by);
                return clock_nanosleep(CLOCK_MONOTONIC, flags, &span, nullptr);
            },
            nullptr};
}

Call usleep_(By by) {
    return {[by] {
                const timespec span = a_while(by);
                return error_of(
                    usleep(static_cast<useconds_t>(span.tv_sec * 1'000'000 + span.tv_nsec / 1000)) != 0);
            },
            nullptr};
}

// It returns what is left.
Call sleep_(By by) {
    return {[by] { return sleep(by == By::ITSELF ? 1000 : 1) > 0 ? EINTR : 0; }, nullptr};
}

// --- all of them ------------------------------------------------------------------------------------------

constexpr IsTimed kTimed = true, kUntimed = false;

const Kind kRestart[] = {
    {"Read", read_},
    {"Readv", readv_},
    {"Write", write_},
    {"Writev", writev_},
    {"OpenOfAFifo", open_},
    {"ReadOfInotify", inotify_},
    {"ReadOfATerminal", read_of_terminal},
    {"WriteToATerminal", write_to_terminal},
    {"IoctlOfATerminal", ioctl_of_terminal},
    {"Wait", wait_},
    {"Waitpid", waitpid_},
    {"Wait4", wait4_},
    {"Waitid", waitid_},
    {"Accept", accept_<kUntimed>},
    {"Connect", connect_<kUntimed>},
    {"Recv", receive_<Receives::RECV, kUntimed>},
    {"Recvfrom", receive_<Receives::RECVFROM, kUntimed>},
    {"Recvmsg", receive_<Receives::RECVMSG, kUntimed>},
    {"Recvmmsg", receive_<Receives::RECVMMSG, kUntimed>},
    {"RecvmmsgUntil", receive_<Receives::RECVMMSG_UNTIL, kUntimed>},
    {"Send", send_<Sends::SEND, kUntimed>},
    {"Sendto", send_<Sends::SENDTO, kUntimed>},
    {"Sendmsg", send_<Sends::SENDMSG, kUntimed>},
    {"ReadOfASocket", receive_<Receives::READ, kUntimed>},
    {"WriteToASocket", send_<Sends::WRITE, kUntimed>},
    {"Flock", flock_},
    {"FcntlSetlkw", fcntl_},
    {"FcntlOfdSetlkw", fcntl_ofd},
    {"MqReceive", mq_receive_<kUntimed>},
    {"MqTimedreceive", mq_receive_<kTimed>},
    {"MqSend", mq_send_<kUntimed>},
    {"MqTimedsend", mq_send_<kTimed>},
    {"FutexWait", futex_<FUTEX_WAIT, kUntimed>},
    {"FutexWaitBitset", futex_<FUTEX_WAIT_BITSET, kUntimed>},
    {"SemWait", sem_wait_<kUntimed>},
    {"PthreadMutexLock", mutex_<kUntimed>},
    {"PthreadMutexTimedlock", mutex_<kTimed>},
    {"PthreadRwlockRdlock", rwlock_<false>},
    {"PthreadRwlockWrlock", rwlock_<true>},
    {"PthreadCondWait", cond_<kUntimed>},
    {"PthreadCondTimedwait", cond_<kTimed>},
    {"PthreadJoin", join_},
};

const Kind kEnd[] = {
    {"AcceptTimed", accept_<kTimed>},
    {"ConnectTimed", connect_<kTimed>},
    {"RecvTimed", receive_<Receives::RECV, kTimed>},
    {"RecvfromTimed", receive_<Receives::RECVFROM, kTimed>},
    {"RecvmsgTimed", receive_<Receives::RECVMSG, kTimed>},
    {"RecvmmsgTimed", receive_<Receives::RECVMMSG, kTimed>},
    {"ReadOfASocketTimed", receive_<Receives::READ, kTimed>},
    {"ReadvOfASocketTimed", receive_<Receives::READV, kTimed>},
    {"SendTimed", send_<Sends::SEND, kTimed>},
    {"SendtoTimed", send_<Sends::SENDTO, kTimed>},
    {"SendmsgTimed", send_<Sends::SENDMSG, kTimed>},
    {"WriteToASocketTimed", send_<Sends::WRITE, kTimed>},
    {"WritevToASocketTimed", send_<Sends::WRITEV, kTimed>},
    {"Sigwaitinfo", sigwaitinfo_<kUntimed>},
    {"Sigtimedwait", sigwaitinfo_<kTimed>},
    {"Poll", for_files<poll_one>},
    {"Ppoll", for_files<ppoll_one>},
    {"Select", for_files<select_one>},
    {"Pselect", for_files<pselect_one>},
    {"EpollWait", for_files<epoll_wait_one>},
    {"EpollPwait", for_files<epoll_pwait_one>},
    {"EpollPwait2", epoll_pwait2_},
    {"IoUringEnter", io_uring_enter_},
    {"Msgrcv", msgrcv_},
    {"Msgsnd", msgsnd_},
    {"Semop", semop_<kUntimed>},
    {"Semtimedop", semop_<kTimed>},
    {"Nanosleep", nanosleep_},
    {"ClockNanosleep", clock_nanosleep_<0>},
    {"ClockNanosleepUntil", clock_nanosleep_<TIMER_ABSTIME>},
    {"Usleep", usleep_},
    {"Sleep", sleep_},
    {"IoGetevents", io_getevents_},
    {"FutexWaitTimed", futex_<FUTEX_WAIT, kTimed>},
    {"FutexWaitBitsetTimed", futex_<FUTEX_WAIT_BITSET, kTimed>},
    {"SemTimedwait", sem_wait_<kTimed>},
};

// These end with EINTR by their nature; where all signals are blocked, never.
const Kind kWaitForSignals[] = {{"Pause", pause_}, {"Sigsuspend", sigsuspend_}};

// --- the tests --------------------------------------------------------------------------------------------

using Case = std::tuple<Mode, Kind>;

std::string name_of_case(const testing::TestParamInfo<Case> &info) {
    const auto &[mode, kind] = info.param;
    return std::string(kind.name) + name_of_mode({mode, 0});
}

class Calls : public Interrupted, public testing::WithParamInterface<Case> {
  protected:
    void SetUp() override {
        Interrupted::SetUp();
        alarm(60);
    }
    void TearDown() override { alarm(0); }
    static Mode mode() { return std::get<0>(GetParam()); }
    static Call prepare(By by) { return std::get<1>(GetParam()).prepare(by); }
};

class CallsThatRestart : public Calls {};
class CallsThatEnd : public Calls {};
class CallsElsewhere : public Calls {};

INSTANTIATE_TEST_SUITE_P(Modes, CallsThatRestart, testing::Combine(kSafeModes, testing::ValuesIn(kRestart)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Modes, CallsThatEnd, testing::Combine(kSafeModes, testing::ValuesIn(kEnd)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(ForSignals, CallsThatEnd,
                         testing::Combine(kSafeModes, testing::ValuesIn(kWaitForSignals)), name_of_case);
INSTANTIATE_TEST_SUITE_P(GoOn, CallsElsewhere, testing::Combine(kSafeModes, testing::ValuesIn(kRestart)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(End, CallsElsewhere, testing::Combine(kSafeModes, testing::ValuesIn(kEnd)),
                         name_of_case);

} // namespace

// The wait is ended when it has been interrupted some times.
TEST_P(CallsThatRestart, AreMadeAgain) {
    const Call call = prepare(By::ITSELF);
    if (!call.make)
        GTEST_SKIP() << "the system has none";
    const Preempting runtime(1, mode());
    int error = EINTR;
    std::atomic<bool> begun{false};
    Thread waits([&] {
        begun = true;
        error = call.make();
    });
    Thread ends([&] {
        while (!begun)
            thrum_yield();
        for (const uint64_t enough = ticks() + 5; ticks() < enough;) {
        }
        call.end();
    });
    waits.join();
    EXPECT_EQ(error, 0) << std::strerror(error);
    EXPECT_GE(preemptions(), 1U);
}

// Neither made again nor EINTR: the pipe has room for a part of it.
class CallsThatWrite : public Interrupted, public testing::WithParamInterface<Mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, CallsThatWrite, kSafeModes, name_of_mode);

TEST_P(CallsThatWrite, SayHowMuchTheyHaveDone) {
    const Ends ends = a_pipe();
    const int room = fcntl(*ends.out, F_GETPIPE_SZ);
    const std::vector<char> much(2 * static_cast<std::size_t>(room));
    const Preempting runtime(1, GetParam());
    std::atomic<bool> over{false};
    ssize_t written = 0;
    Thread writes([&] {
        written = write(*ends.out, much.data(), much.size());
        over = true;
    });
    Thread computes([&] { wait_for(over); });
    writes.join();
    EXPECT_EQ(written, room);
}

// Nothing ends the wait but that.
TEST_P(CallsThatEnd, SayEINTR) {
    const Call call = prepare(By::ITSELF);
    if (!call.make)
        GTEST_SKIP() << "the system has none";
    const Preempting runtime(1, mode());
    int error = 0;
    std::atomic<bool> over{false};
    Thread waits([&] {
        error = call.make();
        over = true;
    });
    Thread computes([&] { wait_for(over); });
    waits.join();
    EXPECT_EQ(error, EINTR) << std::strerror(error);
}

TEST_P(CallsElsewhere, AreNotInterrupted) {
    const Call call = prepare(By::ANOTHER);
    if (!call.make)
        GTEST_SKIP() << "the system has none";
    const Preempting runtime(1, mode());
    std::atomic<bool> begun{false}, over{false};
    int error = EINTR;
    Thread waits([&] {
        const auto make = [](void *arg) -> void * {
            const auto &[made, has_begun, result] =
                *static_cast<std::tuple<const Call &, std::atomic<bool> &, int &> *>(arg);
            has_begun = true;
            result = made.make();
            return nullptr;
        };
        std::tuple<const Call &, std::atomic<bool> &, int &> all(call, begun, error);
        EXPECT_EQ(thrum_blocking(make, &all, nullptr), 0);
        over = true;
    });
    Thread computes([&] { wait_for(over); });
    Thread ends([&] {
        wait_for(begun);
        const uint64_t some = preemptions() + 5;
        while (!over && preemptions() < some) {
        }
        if (call.end)
            call.end();
    });
    waits.join();
    EXPECT_EQ(error, 0) << std::strerror(error);
}

// --- masks for the time of a call -------------------------------------------------------------------------

namespace {

const Kind kWithMasks[] = {
    {"Sigsuspend", sigsuspend_},
    {"Ppoll", for_files<ppoll_one>},
    {"Pselect", for_files<pselect_one>},
    {"EpollPwait", for_files<epoll_pwait_one>},
};

class CallsWithMasks : public Calls {};

INSTANTIATE_TEST_SUITE_P(Modes, CallsWithMasks, testing::Combine(kSafeModes, testing::ValuesIn(kWithMasks)),
                         name_of_case);

bool blocks(int signal) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, signal) == 1;
}

// For the calling kernel thread, which is main's.
class Blocked {
  public:
    explicit Blocked(int signal) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        pthread_sigmask(SIG_BLOCK, &one, &before_);
    }
    Blocked(const Blocked &) = delete;
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

} // namespace

// They unblock signals that are blocked otherwise: while they wait, and not for the unit that runs in the place of
// one that was preempted there, nor for that one when they have returned. By main, and by a thread of its worker's.
TEST_P(CallsWithMasks, LetNothingInForOthersNorAfterwards) {
    constexpr int kTimes = 5;
    const Blocked blocked(SIGUSR2);
    std::vector<Call> calls;
    for (int i = 0; i < 2 * kTimes; i++)
        calls.push_back(prepare(By::ITSELF));
    const Preempting runtime(1, mode());
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0};
    const auto waits = [&](int from) {
        for (int i = from; i < from + kTimes; i++) {
            EXPECT_EQ(calls.at(static_cast<std::size_t>(i)).make(), EINTR);
            wrong += !blocks(SIGUSR2);
        }
    };
    Thread computes([&] {
        while (!over)
            wrong += !blocks(SIGUSR2);
    });
    waits(0);
    Thread other([&] { waits(kTimes); });
    other.join();
    over = true;
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(blocks(SIGUSR2));
}

// A thread that forbids preemption by blocking the signal, and waits with a mask that unblocks it, still blocks it
// when it returns.
TEST_P(CallsWithMasks, LeaveTheTicksSignalBlocked) {
    constexpr int kTimes = 5;
    const int signal = SIGRTMIN + 4;
    std::vector<Call> calls;
    for (int i = 0; i < kTimes; i++)
        calls.push_back(prepare(By::ITSELF));
    const Preempting runtime(1, mode());
    const Blocked blocked(signal);
    std::atomic<bool> over{false};
    Thread computes([&] {
        while (!over)
            thrum_yield();
    });
    for (Call &call : calls) {
        EXPECT_EQ(call.make(), EINTR);
        EXPECT_TRUE(blocks(signal));
    }
    over = true;
    computes.join();
}
