// SPDX-License-Identifier: Apache-2.0
//
// See lammps.hpp.
#include "lammps.hpp"

#include <lammps/library.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace insitu {

namespace {

// The input of its benchmark "lj", but that the potential is 0 at the cutoff and that lists are made when they have to be.
constexpr const char *kBox[] = {"units lj", "atom_style atomic", "atom_modify map array",
                                "lattice fcc 0.8442"};
constexpr const char *kAtoms[] = {"create_box 1 box",
                                  "create_atoms 1 box",
                                  "mass 1 1.0",
                                  "velocity all create 1.44 87287 loop geom",
                                  "pair_style lj/cut 2.5",
                                  "pair_coeff 1 1 1.0 1.0 2.5",
                                  "pair_modify shift yes",
                                  "neighbor 0.3 bin",
                                  "neigh_modify every 1 delay 0 check yes",
                                  "fix 1 all nve",
                                  "thermo 1000000000"};

// LAMMPS takes it for a program that adds forces of its own, which are 0 to begin with and stay so.
void exchange_in_step(void *exchange, std::int64_t, int, int *, double **, double **) {
    (*static_cast<std::function<void()> *>(exchange))();
}

} // namespace

Lammps::Lammps(unsigned cells, std::function<void()> exchange) : exchange_(std::move(exchange)) {
    char name[] = "lammps", log[] = "-log", screen[] = "-screen", none[] = "none";
    char *words[] = {name, log, none, screen, none, nullptr};
    handle_ = lammps_open_no_mpi(5, words, nullptr);
    if (handle_ == nullptr)
        throw std::runtime_error("LAMMPS does not start");
    if (lammps_extract_setting(handle_, "bigint") != 8 || lammps_extract_setting(handle_, "tagint") != 4)
        throw std::runtime_error("LAMMPS was not built with LAMMPS_SMALLBIG, as this program is");
    for (const char *line : kBox)
        command(line);
    const std::string edge = " 0 " + std::to_string(cells);
    command("region box block" + edge + edge + edge);
    for (const char *line : kAtoms)
        command(line);
    if (exchange_) {
        command("fix exchange all external pf/callback 1 1");
        lammps_set_fix_external_callback(handle_, "exchange", exchange_in_step, &exchange_);
    }
    command("run 0 post no");
    gathered_.resize(3 * static_cast<std::size_t>(lammps_get_natoms(handle_)));
}

Lammps::~Lammps() {
    lammps_close(handle_);
}

void Lammps::command(const std::string &line) {
    lammps_command(handle_, line.c_str());
    if (lammps_has_error(handle_) != 0) {
        char why[256];
        lammps_get_last_error_message(handle_, why, sizeof why);
        throw std::runtime_error("LAMMPS, " + line + ": " + why);
    }
}

// Without what a run does first and last: it continues where the last one ended.
void Lammps::advance(unsigned steps) {
    command("run " + std::to_string(steps) + " pre no post no");
}

void Lammps::show(Snapshot *snapshot) {
    double low[3], high[3];
    lammps_extract_box(handle_, low, high, nullptr, nullptr, nullptr, nullptr, nullptr);
    char what[] = "x";
    lammps_gather_atoms(handle_, what, 1, 3, gathered_.data());
    snapshot->edge = high[0] - low[0];
    snapshot->atoms.clear();
    for (std::size_t i = 0; i < gathered_.size(); i += 3)
        snapshot->atoms.push_back({gathered_[i], gathered_[i + 1], gathered_[i + 2]});
}

// LAMMPS computes it where it prints it: at the end of a run, even of one without steps.
double Lammps::energy() {
    command("run 0 pre no post no");
    return lammps_get_thermo(handle_, "etotal");
}

} // namespace insitu
