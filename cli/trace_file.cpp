// SPDX-License-Identifier: Apache-2.0
#include "trace_file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "tools/failure.hpp"

namespace thrum {

namespace {

// A pipe or a device has no size, and an open of a pipe may wait for ever.
const std::string &refuse_pipes(const std::string &path) {
    struct stat status;
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        throw Failure(kFailed, path + " is not a regular file; name one that libthrum wrote for THRUM_TRACE");
    return path;
}

class Reader {
  public:
    explicit Reader(const std::string &path)
        : path_(refuse_pipes(path)), file_(std::fopen(path.c_str(), "rb"), close) {
        if (file_ == nullptr || std::fseek(file_.get(), 0, SEEK_END) != 0 ||
            (left_ = std::ftell(file_.get())) < 0 || std::fseek(file_.get(), 0, SEEK_SET) != 0)
            throw Failure(kFailed, "cannot read " + path + ": " + std::strerror(errno));
        if (left_ == 0)
            refuse("is empty: a signal or _exit() ended the process, or it is still running");
    }

    bool at_end() const { return left_ == 0; }
    bool has(std::size_t bytes) const { return static_cast<std::size_t>(left_) >= bytes; }

    // `times` objects of a size; the file says how many, so they are asked for when it is known that they are there.
    template <typename Object>
    void read(Object *to, std::uint64_t times) {
        check_left(times, sizeof(Object));
        if (std::fread(to, sizeof(Object), times, file_.get()) != times)
            throw Failure(kFailed, "cannot read " + path_ + ": " + std::strerror(errno));
        left_ -= static_cast<long>(times * sizeof(Object));
    }
    void check_left(std::uint64_t times, std::size_t size) const {
        if (times > static_cast<std::uint64_t>(left_) / size)
            refuse("is truncated: the disk was full, or it is still being written");
    }
    [[noreturn]] void refuse(const std::string &why) const { throw Failure(kFailed, path_ + " " + why); }

  private:
    static void close(std::FILE *file) {
        if (file != nullptr)
            std::fclose(file);
    }

    std::string path_;
    std::unique_ptr<std::FILE, decltype(&close)> file_;
    long left_ = 0;
};

thrum_trace_header read_header(Reader &reader) {
    thrum_trace_header header{};
    if (reader.has(sizeof header.magic))
        reader.read(header.magic, sizeof header.magic);
    if (std::memcmp(header.magic, THRUM_TRACE_MAGIC, sizeof header.magic) != 0)
        reader.refuse("is not a trace: expected a file that libthrum wrote for THRUM_TRACE, which begins "
                      "with '" THRUM_TRACE_MAGIC "'");
    reader.read(reinterpret_cast<char *>(&header) + sizeof header.magic, sizeof header - sizeof header.magic);
    if (header.version != THRUM_TRACE_VERSION || header.header_bytes != sizeof header ||
        header.event_bytes != sizeof(thrum_trace_event))
        reader.refuse("is a trace of version " + std::to_string(header.version) +
                      ", but this thrum reads version " + std::to_string(THRUM_TRACE_VERSION));
    return header;
}

TraceRing read_ring(Reader &reader) {
    TraceRing ring{};
    reader.read(&ring.head, 1);
    reader.check_left(ring.head.events, sizeof(thrum_trace_event));
    ring.events.resize(ring.head.events);
    reader.read(ring.events.data(), ring.events.size());
    return ring;
}

} // namespace

std::vector<TraceSection> read_trace(const std::string &path) {
    Reader reader(path);
    std::vector<TraceSection> sections;
    while (!reader.at_end()) {
        TraceSection section{read_header(reader), {}, {}};
        for (std::uint32_t i = 0; i < section.header.rings; i++)
            section.rings.push_back(read_ring(reader));
        reader.check_left(section.header.maps_bytes, 1);
        section.maps.resize(section.header.maps_bytes);
        reader.read(section.maps.data(), section.maps.size());
        sections.push_back(std::move(section));
    }
    return sections;
}

} // namespace thrum
