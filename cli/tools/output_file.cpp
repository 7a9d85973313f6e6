// SPDX-License-Identifier: Apache-2.0
#include "tools/output_file.hpp"

#include <fcntl.h>
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
        if (fd_ < 0)
            fail();
        return;
    }
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    made_ = fd_ >= 0;
    if (!made_)
        fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0)
        fail();
}

OutputFile::~OutputFile() {
    if (fd_ >= 0)
        close(fd_);
    if (made_ && !written_)
        unlink(path_.c_str());
}

void OutputFile::write(const std::string &text) {
    written_ = false;
    add(text);
}

void OutputFile::add(const std::string &text) {
    if (!written_ && !is_stream_) {
        lseek(fd_, 0, SEEK_SET);
        if (ftruncate(fd_, 0) != 0 && errno != EINVAL) // a pipe has no length
            fail();
    }
    written_ = true;
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
