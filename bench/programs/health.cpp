// SPDX-License-Identifier: Apache-2.0
//
// health [LEVELS [STEPS]]: a country's health system, simulated step by step. Villages form a tree, four to a
// district and so on, each with a hospital. In a step people fall ill, wait for one of the staff, are
// assessed, and are then healthy, treated here, or sent to the hospital one level up. Each step simulates the
// parts of a district in threads of their own, at every level: many threads that do very little.
#include <deque>
#include <memory>

#include "async.hpp"

namespace {

constexpr unsigned kParts = 4;                       // of a district
constexpr unsigned kVillagers = 20;                  // that can fall ill where there is no district below
constexpr unsigned kAssessment = 3, kTreatment = 10; // steps
constexpr double kIll = 0.1, kNeedsTreatment = 0.4, kNeedsBetterHospital = 0.3;

struct Patient {
    std::uint32_t number;
    unsigned left; // steps of what is going on with him
    unsigned steps, hospitals;
};

using Patients = std::deque<Patient>;

class Hospital {
  public:
    Hospital(unsigned level, std::uint64_t seed) : level_(level), staff_(1u << (2 * level)), random_(seed) {
        healthy_ = level == 0 ? kVillagers : 0;
        for (unsigned i = 0; level > 0 && i < kParts; i++)
            parts_.push_back(std::make_unique<Hospital>(level - 1, seed * kParts + i + 1));
    }

    // One step of this hospital and of all below. Returns those that have to go to a better one.
    Patients step() {
        std::vector<std::future<Patients>> arriving;
        for (const auto &part : parts_)
            arriving.push_back(program::start([&part] { return part->step(); }));
        Patients sent;
        treat();
        assess(sent);
        admit();
        fall_ill();
        for (auto &patients : arriving) // in the order of the parts, so that every run is the same
            for (const Patient &patient : patients.get())
                waiting_.push_back({patient.number, 0, patient.steps, patient.hospitals + 1});
        return level_ == top ? Patients{} : sent;
    }

    void add_to(program::Checksum &checksum) const {
        for (const std::uint64_t value : {done_, steps_, hospitals_, std::uint64_t{healthy_}})
            checksum.add(value);
        for (const auto &part : parts_)
            part->add_to(checksum);
    }

    static inline unsigned top = 0;

  private:
    void treat() {
        for (std::size_t i = treated_.size(); i > 0; i--) {
            Patient patient = next_of(treated_);
            if (patient.left > 0)
                treated_.push_back(patient);
            else
                go_home(patient);
        }
    }
    void assess(Patients &sent) {
        for (std::size_t i = assessed_.size(); i > 0; i--) {
            Patient patient = next_of(assessed_);
            if (patient.left > 0)
                assessed_.push_back(patient);
            else if (random_.unit() >= kNeedsTreatment)
                go_home(patient);
            else if (level_ != top && random_.unit() < kNeedsBetterHospital)
                leave_for(sent, patient);
            else
                begin(treated_, patient, kTreatment);
        }
    }
    void admit() {
        for (Patient &patient : waiting_)
            patient.steps++;
        for (; staff_ > 0 && !waiting_.empty(); staff_--) {
            begin(assessed_, waiting_.front(), kAssessment);
            waiting_.pop_front();
        }
    }
    void fall_ill() {
        for (unsigned i = healthy_; i > 0; i--)
            if (random_.unit() < kIll) {
                healthy_--;
                waiting_.push_back({next_number_++, 0, 0, 1});
            }
    }
    static Patient next_of(Patients &patients) {
        Patient patient = patients.front();
        patients.pop_front();
        patient.left--;
        patient.steps++;
        return patient;
    }
    static void begin(Patients &patients, Patient patient, unsigned steps) {
        patient.left = steps;
        patients.push_back(patient);
    }
    void leave_for(Patients &sent, const Patient &patient) {
        staff_++;
        if (level_ == 0)
            healthy_++; // a person moves in, so that villages do not die out
        sent.push_back(patient);
    }
    void go_home(const Patient &patient) {
        staff_++;
        done_++;
        steps_ += patient.steps;
        hospitals_ += patient.hospitals;
        if (level_ == 0)
            healthy_++;
    }

    unsigned level_, staff_, healthy_ = 0;
    std::uint32_t next_number_ = 0;
    std::uint64_t done_ = 0, steps_ = 0, hospitals_ = 0;
    program::Random random_;
    Patients waiting_, assessed_, treated_;
    std::vector<std::unique_ptr<Hospital>> parts_;
};

} // namespace

int main(int argc, char **argv) {
    argc = program::arguments_of(argc, argv);
    Hospital::top = static_cast<unsigned>(program::size_argument(argc, argv, 1, 4));
    const unsigned long steps = program::size_argument(argc, argv, 2, 100);
    Hospital country(Hospital::top, 1);

    program::Stopwatch stopwatch;
    for (unsigned long step = 0; step < steps; step++)
        country.step();
    stopwatch.stop();
    program::Checksum checksum;
    country.add_to(checksum);
    stopwatch.report(checksum.value(), program::threads, program::deferred);
    return 0;
}
