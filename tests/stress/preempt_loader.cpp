// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: modules are loaded, used and unloaded, by name and by address looked up. The loader has a recursive
// lock of its own, and gives each thread the thread-locals of a module when they are first used.
#include <dlfcn.h>
#include <link.h>

#include <string>

#include "preempt_stress.h"

namespace {

constexpr unsigned kModules = 2;

class Loader : public Torture {
  public:
    const char *name() const override { return "loader"; }

    void step(Actor &actor) override {
        const In in(actor, kLoader);
        switch (actor.random.below(4)) {
        case 0: look_around(); break;
        case 1: load("libm.so.6", nullptr); break;
        default: load(module_[actor.random.below(kModules)].c_str(), &actor); break;
        }
        safepoint();
    }

  private:
    static void load(const char *file, Actor *user) {
        void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (module == nullptr)
            fail(__FILE__, __LINE__, "dlopen: %s", dlerror());
        void *symbol = dlsym(module, user != nullptr ? "preempt_module_use" : "cos");
        CHECK(symbol != nullptr);
        Dl_info info;
        CHECK(dladdr(symbol, &info) != 0);
        if (user != nullptr) {
            CHECK(info.dli_saddr == symbol); // cos is one of several
            CHECK_EQ(reinterpret_cast<unsigned long (*)(unsigned long)>(symbol)(user->random.next()), 42);
        }
        CHECK_EQ(dlclose(module), 0);
    }

    static int see_module(dl_phdr_info *info, std::size_t, void *count) {
        CHECK(info->dlpi_phnum > 0);
        ++*static_cast<unsigned *>(count);
        return 0;
    }

    static void look_around() {
        unsigned modules = 0;
        CHECK_EQ(dl_iterate_phdr(see_module, &modules), 0);
        CHECK(modules > 3);
        CHECK(dlsym(RTLD_DEFAULT, "malloc") != nullptr);
        CHECK(dlsym(RTLD_DEFAULT, "preempt_no_such_symbol") == nullptr);
        CHECK(dlerror() != nullptr);
    }

    const std::string module_[kModules] = {PREEMPT_MODULE_A, PREEMPT_MODULE_B};
};

} // namespace

void add_loader(Tortures &all) {
    all.push_back(std::make_unique<Loader>());
}
