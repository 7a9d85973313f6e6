// SPDX-License-Identifier: Apache-2.0
//
// A folder with thrum installed in it, bin/thrum and lib/libthrum-cache.so, where any user may read it. Tests put
// their programs and scripts there as well.
#pragma once

#include <string>

#include "spawn.hpp"

// Thrown away with everything in it at the end.
class Place {
  public:
    // `name`: of the folder, below a fresh temporary one. `library`: what stands as libthrum-cache.so; empty: none.
    explicit Place(const std::string &library, const std::string &name = "thrum");
    ~Place();
    Place(const Place &) = delete;
    Place &operator=(const Place &) = delete;

    std::string path(const std::string &name) const { return folder_ + "/" + name; }
    std::string thrum() const { return path("bin/thrum"); }
    std::string library() const { return path("lib/libthrum-cache.so"); }

    // Both give back the path of what they made. `mode` as for chmod.
    std::string copy(const std::string &from, const std::string &name, unsigned mode = 0755) const;
    std::string write(const std::string &name, const std::string &content, unsigned mode = 0755) const;

    // thrum run WORDS...
    Ended run(const Words &words, const World &world = {}) const;

  private:
    std::string top_, folder_;
};

// With the stand-in; made once, for all tests.
const Place &place();

std::string read_file(const std::string &path);
