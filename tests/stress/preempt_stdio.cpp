// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: printf into memory and into files that several share, whose lines must be whole and in each
// writer's order; scanf and getline. stdio locks its files for the kernel thread, and counts how often.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preempt_stress.h"

namespace {

constexpr unsigned kWritersAFile = 8;
constexpr long kLinesAtMost = 20000; // of a file

std::uint64_t checksum(unsigned actor, std::uint64_t number) {
    return mixed(actor * UINT64_C(1000003) + number);
}

class Stdio : public Torture {
  public:
    const char *name() const override { return "stdio"; }

    void begin(unsigned actors) override {
        written_.assign(actors, 0);
        files_ = std::vector<Shared>(actors / kWritersAFile + 1);
        for (Shared &shared : files_)
            CHECK((shared.file = std::tmpfile()) != nullptr);
    }

    void step(Actor &actor) override {
        const In in(actor, kStdio);
        switch (actor.random.below(4)) {
        case 0: write_line(actor); break;
        case 1: write_in_pieces(actor); break;
        case 2: read_back(actor); break;
        default: convert(actor); break;
        }
        safepoint();
    }

    void end() override {
        std::vector<std::uint64_t> read(written_.size(), 0);
        for (Shared &shared : files_) {
            std::rewind(shared.file);
            std::uint64_t number = 0, sum = 0;
            unsigned actor = 0;
            char line[128];
            while (std::fgets(line, sizeof line, shared.file) != nullptr) {
                char newline = 0;
                if (std::sscanf(line, "%u %" SCNu64 " %" SCNx64 "%c", &actor, &number, &sum, &newline) != 4 ||
                    newline != '\n' || actor >= read.size() || sum != checksum(actor, number))
                    fail(__FILE__, __LINE__, "a line of a file that several write is '%s'", line);
                CHECK_EQ(number, read[actor]);
                read[actor]++;
            }
            CHECK_EQ(std::fclose(shared.file), 0);
        }
        for (std::size_t i = 0; i < read.size(); i++)
            CHECK_EQ(read[i], written_[i]);
    }

  private:
    struct Shared {
        std::FILE *file = nullptr;
        std::atomic<long> lines{0};
        Shared() = default;
    };

    Shared &file_of(const Actor &actor) { return files_[actor.number % files_.size()]; }

    void write_line(Actor &actor) {
        Shared &shared = file_of(actor);
        if (shared.lines.fetch_add(1, std::memory_order_relaxed) >= kLinesAtMost)
            return;
        const std::uint64_t number = written_[actor.number]++;
        CHECK(std::fprintf(shared.file, "%u %" PRIu64 " %" PRIx64 "\n", actor.number, number,
                           checksum(actor.number, number)) > 0);
        if (actor.random.one_in(32))
            CHECK_EQ(std::fflush(shared.file), 0);
    }

    // The lock is recursive: no other thread's pieces come in between.
    void write_in_pieces(Actor &actor) {
        Shared &shared = file_of(actor);
        if (shared.lines.fetch_add(1, std::memory_order_relaxed) >= kLinesAtMost)
            return;
        const std::uint64_t number = written_[actor.number]++;
        flockfile(shared.file);
        std::fprintf(shared.file, "%u ", actor.number);
        hold(actor);
        std::fprintf(shared.file, "%" PRIu64, number);
        putc_unlocked(' ', shared.file);
        std::fprintf(shared.file, "%" PRIx64, checksum(actor.number, number));
        std::fputc('\n', shared.file);
        funlockfile(shared.file);
    }

    // A file of one's own, in memory.
    static void read_back(Actor &actor) {
        char text[256];
        const unsigned first = actor.random.below(1000000);
        std::FILE *file = fmemopen(text, sizeof text, "w+");
        if (file == nullptr) // under pressure
            return;
        for (unsigned i = 0; i < 4; i++)
            std::fprintf(file, "%u,%s\n", first + i, "abcdefgh");
        std::rewind(file);
        char *line = nullptr;
        std::size_t size = 0;
        for (unsigned i = 0; i < 4; i++) {
            CHECK(getline(&line, &size, file) > 0);
            CHECK_EQ(std::strtoul(line, nullptr, 10), first + i);
        }
        std::free(line);
        CHECK_EQ(std::fclose(file), 0);
    }

    static void convert(Actor &actor) {
        char text[200];
        const unsigned number = actor.random.below(1U << 31);
        const double fraction = number * 0.37;
        const int length =
            std::snprintf(text, sizeof text, "%u %s %.17g %a", number, "abcdefgh", fraction, fraction);
        unsigned read = 0;
        char word[16] = "";
        double decimal = 0, exact = 0;
        CHECK_EQ(std::sscanf(text, "%u %15s %lg %la", &read, word, &decimal, &exact), 4);
        if (read != number || std::strcmp(word, "abcdefgh") != 0 || decimal != fraction ||
            exact != fraction || std::strlen(text) != static_cast<std::size_t>(length))
            fail(__FILE__, __LINE__, "%u is written as '%s'", number, text);
    }

    std::vector<Shared> files_;
    std::vector<std::uint64_t> written_; // lines, of each actor
};

} // namespace

void add_stdio(Tortures &all) {
    all.push_back(std::make_unique<Stdio>());
}
