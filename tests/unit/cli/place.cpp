// SPDX-License-Identifier: Apache-2.0
#include "place.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace fs = std::filesystem;

namespace {

std::string make_folder() {
    std::string name = (fs::temp_directory_path() / "thrum-cli-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
        throw std::runtime_error("cannot make a folder like " + name);
    chmod(name.c_str(), 0755);
    return fs::canonical(name).string();
}

} // namespace

Place::Place(const std::string &library, const std::string &name)
    : top_(make_folder()), folder_(top_ + "/" + name) {
    fs::create_directories(path("bin"));
    fs::create_directories(path("lib"));
    copy(CLI_THRUM, "bin/thrum");
    if (!library.empty())
        copy(library, "lib/libthrum-cache.so", 0644);
}

Place::~Place() {
    std::error_code ignored;
    fs::remove_all(top_, ignored);
}

std::string Place::copy(const std::string &from, const std::string &name, unsigned mode) const {
    return write(name, read_file(from), mode);
}

std::string Place::write(const std::string &name, const std::string &content, unsigned mode) const {
    const std::string to = path(name);
    fs::remove(to);
    std::ofstream file(to, std::ios::binary);
    file << content;
    file.close();
    if (!file || chmod(to.c_str(), mode) != 0)
        throw std::runtime_error("cannot write " + to);
    return to;
}

Ended Place::run(const Words &words, const World &world) const {
    Words all{thrum(), "run"};
    all.insert(all.end(), words.begin(), words.end());
    return spawn(all, world);
}

const Place &place() {
    static const Place the_place(CLI_STANDIN);
    return the_place;
}

std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(file), {}};
}
