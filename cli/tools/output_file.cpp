// SPDX-License-Identifier: Apache-2.0
#include "tools/output_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/failure.hpp"

namespace thrum {

std::string name_of_output(const std::string &path) {
    return path == OutputFile::kStandard ? "standard output" : path;
}

OutputFile::OutputFile(const std::string &path) : path_(path) {
    if (path.empty())
        return;
    if (path == kStandard) {
        path_ = name_of_output(path);
        fd_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        is_stream_ = true;
        if (fd_ >= 0 && (fcntl(fd_, F_GETFL) & O_ACCMODE) == O_RDONLY) { // it was closed: main.cpp
            close(fd_);
            fd_ = -1;
            errno = EBADF;
        }
        if (fd_ < 0)
            fail();
        return;
    }
    do
        open_file();
    while (!claim());
}

OutputFile::~OutputFile() {
    if (made_ && !written_) // while it is still locked: from then on it may be another's
        unlink(path_.c_str());
    if (fd_ >= 0)
        close(fd_);
}

void OutputFile::open_file() {
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    made_ = fd_ >= 0;
    if (!made_)
        fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0)
        fail();
}

// By a lock of the file, where the file system has locks. False: the file was removed before it was locked.
bool OutputFile::claim() {
    struct stat status;
    if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode))
        return true;
    const bool is_others = flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const bool is_gone = fstat(fd_, &status) == 0 && status.st_nlink == 0;
    if (!is_others && !is_gone)
        return true;
    close(fd_);
    fd_ = -1;
    made_ = false;
    if (is_others)
        throw Failure(kFailed, "something else is writing to " + path_ + "; name another file");
    return false;
}

void OutputFile::write(const std::string &text) {
    written_ = false;
    add(text);
}

int OutputFile::begin() {
    if (!written_ && !is_stream_) {
        lseek(fd_, 0, SEEK_SET);
        if (ftruncate(fd_, 0) != 0 && errno != EINVAL) // a pipe has no length
            fail();
    }
    written_ = true;
    return fd_;
}

void OutputFile::add(const std::string &text) {
    begin();
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t part = ::write(fd_, text.data() + done, text.size() - done);
        if (part < 0 && errno != EINTR)
            fail();
        done += part < 0 ? 0 : static_cast<std::size_t>(part);
    }
}

void OutputFile::fail() const {
    throw Failure(kFailed, "cannot write " + path_ + ": " + std::strerror(errno));
}

} // namespace thrum
