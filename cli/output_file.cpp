// SPDX-License-Identifier: Apache-2.0
#include "output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.hpp"

namespace thrum {

OutputFile::OutputFile(const std::string &path) : path_(path) {
    if (path.empty())
        return;
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
    written_ = true;
    if (ftruncate(fd_, 0) != 0 && errno != EINVAL) // a pipe has no length
        fail();
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
