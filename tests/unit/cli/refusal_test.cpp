// SPDX-License-Identifier: Apache-2.0
//
// Programs that `thrum run` does not start, and those that look like them but are started. Every refusal is one line
// on stderr: 127 not found, 126 not executable, 125 out of LD_PRELOAD's reach.
#include <elf.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>

#include "place.hpp"

namespace {

const std::string kProbe = CLI_PROBE;
constexpr uid_t kOther = 54321; // of no account

void expect_refused(const Ended &ended, int code, const std::string &line) {
    EXPECT_EQ(ended.err, "thrum run: " + line + "\n");
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.code(), code);
}

void expect_runs(const Ended &ended) {
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.out, "yes"); // the library is in it
    EXPECT_EQ(ended.code(), 0);
}

// --- no such program -----------------------------------------------------------------------------------------

TEST(Refusal, NotFound) {
    expect_refused(place().run({"--", "no-such-program", "x"}), 127,
                   "there is no program 'no-such-program' in PATH");
    expect_refused(place().run({"./no-such-program"}), 127, "./no-such-program: No such file or directory");
    expect_refused(place().run({""}), 127, "there is no program '' in PATH");
    for (const char *path : {"", "/no/such/folder:/etc/passwd", "/proc/1/map_files:/no/such/folder"})
        expect_refused(place().run({"true"}, with({{"PATH", path}})), 127,
                       "there is no program 'true' in PATH");
}

TEST(Refusal, NotExecutable) {
    const std::string plain = place().write("plain", "text\n", 0644);
    expect_refused(place().run({plain}), 126, plain + " is not executable");
    const World world = with({{"PATH", place().path("")}});
    expect_refused(place().run({"plain"}, world), 126, place().path("") + "/plain is not executable");
    expect_refused(place().run({"/"}), 126, "/: Is a directory");
    expect_refused(place().run({plain + "/x"}), 126, plain + "/x: Not a directory");
}

TEST(Refusal, AFileThatIsNotExecutableDoesNotHideOneLaterInPath) {
    place().write("lib/hidden", "text\n", 0644);
    place().write("hidden", read_file(kProbe));
    const World world = with({{"PATH", place().path("lib") + ":" + place().path("")}});
    expect_runs(place().run({"hidden", "loaded"}, world));
}

// --- not for this loader ----------------------------------------------------------------------------------------

std::string static_line(const std::string &subject) {
    return subject + " is statically linked, so LD_PRELOAD cannot reach it; link it dynamically, or run it "
                     "without thrum";
}

std::string musl_line(const std::string &subject, const std::string &loader) {
    return subject + " is linked against musl (its loader is " + loader +
           "), but the libraries of thrum are for glibc; build it against glibc, or run it without thrum";
}

// The probe's bytes with its ELF header and program headers changed.
template <typename Change>
std::string forge(Change change) {
    std::string bytes = read_file(kProbe);
    auto *header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
    change(bytes, *header, reinterpret_cast<Elf64_Phdr *>(bytes.data() + header->e_phoff));
    return bytes;
}

Elf64_Phdr *interpreter_header(const Elf64_Ehdr &header, Elf64_Phdr *headers) {
    for (int i = 0; i < header.e_phnum; i++)
        if (headers[i].p_type == PT_INTERP)
            return &headers[i];
    throw std::runtime_error("the probe has no PT_INTERP");
}

std::string with_loader(const std::string &loader) {
    return forge([&](std::string &bytes, Elf64_Ehdr &header, Elf64_Phdr *headers) {
        const Elf64_Phdr *interpreter = interpreter_header(header, headers);
        if (loader.size() >= interpreter->p_filesz)
            throw std::runtime_error("the probe's loader has too short a name");
        std::memset(&bytes[interpreter->p_offset], 0, interpreter->p_filesz);
        std::memcpy(&bytes[interpreter->p_offset], loader.data(), loader.size());
    });
}

std::string without_loader() {
    return forge([](std::string &, Elf64_Ehdr &header, Elf64_Phdr *headers) {
        interpreter_header(header, headers)->p_type = PT_NULL;
    });
}

TEST(Refusal, StaticallyLinked) {
    const std::string forged = place().write("static-pie", without_loader());
    expect_refused(place().run({forged}), 125, static_line(forged));
#ifdef CLI_STATIC_PROGRAM
    expect_refused(place().run({CLI_STATIC_PROGRAM}), 125, static_line(CLI_STATIC_PROGRAM));
#endif
}

TEST(Refusal, Musl) {
    const std::string loader = "/lib/ld-musl-test.so.1";
    const std::string forged = place().write("musl", with_loader(loader));
    expect_refused(place().run({"--verbose", "--", forged}), 125, musl_line(forged, loader));
#ifdef CLI_MUSL_PROGRAM
    const Ended ended = place().run({CLI_MUSL_PROGRAM});
    EXPECT_EQ(ended.code(), 125);
    EXPECT_EQ(ended.err.find("thrum run: " CLI_MUSL_PROGRAM " is linked against musl (its loader is /"), 0u)
        << ended.err;
#endif
}

TEST(Refusal, ALoaderThatDoesNotExist) {
    const std::string forged = place().write("no-loader", with_loader("/lib/ld-none.so.1"));
    expect_refused(place().run({forged}), 127, forged + ": its loader /lib/ld-none.so.1 does not exist");
}

#if defined(__x86_64__)
constexpr const char *kMachine = "x86-64", *kForeignMachine = "aarch64";
constexpr Elf64_Half kForeign = EM_AARCH64;
#else
constexpr const char *kMachine = "aarch64", *kForeignMachine = "x86-64";
constexpr Elf64_Half kForeign = EM_X86_64;
#endif

TEST(Refusal, AnotherMachine) {
    const std::string machine = kMachine;
    const std::string small =
        place().write("small", forge([](std::string &, Elf64_Ehdr &header, Elf64_Phdr *) {
                          header.e_ident[EI_CLASS] = ELFCLASS32;
                          header.e_machine = EM_386;
                      }));
    expect_refused(place().run({small}), 125,
                   small + " is a 32-bit program (x86), but this thrum supports 64-bit " + machine +
                       " programs; build it as 64-bit, or run it without thrum");
    const std::string foreign = place().write(
        "foreign",
        forge([](std::string &, Elf64_Ehdr &header, Elf64_Phdr *) { header.e_machine = kForeign; }));
    expect_refused(place().run({foreign}), 125,
                   foreign + " is built for " + kForeignMachine + ", but this thrum supports " + machine +
                       " programs; run it without thrum");
    const std::string big = place().write("big", forge([](std::string &, Elf64_Ehdr &header, Elf64_Phdr *) {
                                              header.e_ident[EI_DATA] = ELFDATA2MSB;
                                              header.e_machine = __builtin_bswap16(header.e_machine);
                                          }));
    expect_refused(place().run({big}), 125,
                   big + " is big-endian, but this thrum supports " + machine +
                       " programs; run it without thrum");
}

TEST(Refusal, TheLoaderItselfIsNotTakenForAStaticProgram) {
    const std::string bytes = read_file(kProbe);
    const auto *header = reinterpret_cast<const Elf64_Ehdr *>(bytes.data());
    auto *headers = reinterpret_cast<Elf64_Phdr *>(const_cast<char *>(bytes.data()) + header->e_phoff);
    const std::string loader = bytes.data() + interpreter_header(*header, headers)->p_offset;
    expect_runs(place().run({loader, kProbe, "loaded"}));
}

#ifdef THRUM_DEBUG
TEST(Refusal, SkippingTheRowLeavesTheRefusalsOut) {
    const std::string forged = place().write("skipped", with_loader("/lib/ld-musl-test.so.1"));
    const World world = with({{"THRUM_SKIP", "rest,preload"}});
    expect_refused(place().run({forged}, world), 127,
                   forged + " cannot be executed: No such file or directory");
#ifdef CLI_STATIC_PROGRAM
    EXPECT_EQ(place().run({CLI_STATIC_PROGRAM}, world).code(), 0);
#endif
}
#else
TEST(Refusal, ReleaseBuildsDoNotKnowThrumSkip) {
    const std::string forged = place().write("skipped", without_loader());
    const World world = with({{"THRUM_SKIP", "preload"}});
    expect_refused(place().run({forged}, world), 125, static_line(forged));
}
#endif

// --- scripts -----------------------------------------------------------------------------------------------------

TEST(Refusal, ScriptsOfGoodInterpretersRun) {
    const std::string direct = place().write("direct", "#! " + kProbe + "\t" + "loaded \n");
    expect_runs(place().run({direct}));
    const std::string nested = place().write("nested", "#!" + direct + "\n");
    EXPECT_EQ(place().run({nested}).out, "yes");
    const std::string shell = place().write("shell", "#!/bin/sh -e\nprintf %s \"$-$1\"\nexit 3\n");
    const Ended ended = place().run({shell, "argument"});
    EXPECT_EQ(ended.out, spawn({shell, "argument"}).out);
    EXPECT_EQ(ended.code(), 3);
}

TEST(Refusal, AScriptWithoutInterpreterIsTheShells) {
    const std::string bare = place().write("bare", "printf '%s:' \"$0\" \"$@\"\nexit 4\n");
    const Ended ended = place().run({bare, "a b", ""});
    EXPECT_EQ(ended.out, bare + ":a b::");
    EXPECT_EQ(ended.code(), 4);
}

TEST(Refusal, ScriptsAreFollowedToTheirInterpreter) {
    const std::string interpreter = place().write("static-interpreter", without_loader());
    const std::string one = place().write("one", "#!" + interpreter + " -x\n");
    expect_refused(place().run({one}), 125, static_line("the interpreter " + interpreter + " of " + one));
    const std::string four = place().write(
        "four", "#!" + place().write("three", "#!" + place().write("two", "#!" + one + "\n") + "\n") + "\n");
    expect_refused(place().run({four}), 125, static_line("the interpreter " + interpreter + " of " + four));
}

TEST(Refusal, EnvInAScriptIsFollowed) {
    const std::string interpreter = place().write("env-static", without_loader());
    const World world = with({{"PATH", place().path("bin") + ":" + place().path(".") + ":/usr/bin:/bin"}});
    const std::string found = place().path("./env-static");
    for (const char *rest : {"env-static", "-S env-static -x", "-S A=1 B=2 env-static", "-Senv-static",
                             "--split-string=env-static a"}) {
        const std::string script = place().write("env-script", std::string("#!/usr/bin/env ") + rest + "\n");
        expect_refused(place().run({script}, world), 125,
                       static_line("the interpreter " + found + " of " + script));
    }
    const std::string good = place().write("env-good", "#!/usr/bin/env -S A=1 " + kProbe + " env A\n");
    EXPECT_EQ(place().run({good}, world).out.substr(0, 4), "A=1\n");
}

TEST(Refusal, WhatEnvCannotFindIsEnvsToReport) {
    const std::string script = place().write("env-none", "#!/usr/bin/env no-such-program\n");
    const World world = with({{"PATH", "/usr/bin:/bin"}});
    const Ended ended = place().run({script}, world), bare = spawn({script}, world);
    EXPECT_EQ(ended.code(), 127);
    EXPECT_EQ(ended.err, bare.err);
}

TEST(Refusal, AMissingInterpreter) {
    const std::string script = place().write("orphan", "#!/no/such/interpreter -x\n");
    expect_refused(place().run({script}), 127,
                   script + ": its interpreter /no/such/interpreter does not exist");
    const std::string dos = place().write("dos", "#!/bin/sh\r\necho x\r\n");
    expect_refused(
        place().run({dos}), 127,
        dos + ": its interpreter /bin/sh\\r does not exist; the script's lines end in carriage returns");
}

TEST(Refusal, AScriptThatIsItsOwnInterpreterEnds) {
    const std::string script = place().write("loop", "#!" + place().path("loop") + "\n");
    expect_refused(place().run({script}), 126,
                   script + " cannot be executed: Too many levels of symbolic links");
}

// --- other users' rights -------------------------------------------------------------------------------------

const std::string kConsequence =
    ", so the loader ignores LD_PRELOAD in it; run it without thrum, or run a plain copy of it";

// Root's programs of the system, as another user.
TEST(Refusal, SetUserIdProgramsOfTheSystem) {
    World world;
    world.user = getuid() == 0 ? kOther : 0;
    int seen = 0;
    for (const std::string program : {"/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount"}) {
        struct stat status;
        if (stat(program.c_str(), &status) != 0 || (status.st_mode & S_ISUID) == 0 || status.st_uid != 0)
            continue;
        expect_refused(place().run({program, "--version"}, world), 125,
                       program + " is set-user-ID (to uid 0)" + kConsequence);
        seen++;
    }
    if (seen == 0)
        GTEST_SKIP() << "this system has none of su, passwd and mount as set-user-ID programs";
}

// These need root, to make files of other users and to become one, and a file system that heeds such files.
class RefusalRights : public ::testing::Test {
  protected:
    void SetUp() override {
        struct statvfs mount;
        if (getuid() != 0)
            GTEST_SKIP() << "only root can make files of other users";
        if (statvfs(place().path("").c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0)
            GTEST_SKIP() << "the temporary folder is mounted nosuid";
    }
    static std::string program(const std::string &name, uid_t user, gid_t group, unsigned mode) {
        const std::string path = place().write(name, read_file(kProbe));
        EXPECT_EQ(chown(path.c_str(), user, group), 0);
        EXPECT_EQ(chmod(path.c_str(), mode), 0); // after chown, which clears the bits
        return path;
    }
    static Ended run_as(uid_t user, const std::string &path) {
        World world;
        world.user = user;
        return place().run({path, "loaded"}, world);
    }
};

TEST_F(RefusalRights, SetUserId) {
    const std::string others = program("setuid", kOther, 0, 04755);
    expect_refused(run_as(0, others), 125, others + " is set-user-ID (to uid 54321)" + kConsequence);
    expect_runs(run_as(kOther, others));
    const std::string roots = program("setuid-root", 0, 0, 04755);
    expect_refused(run_as(kOther, roots), 125, roots + " is set-user-ID (to uid 0)" + kConsequence);
    expect_runs(run_as(0, roots));
}

TEST_F(RefusalRights, SetUserIdAndNotReadable) {
    const std::string roots = program("setuid-secret", 0, 0, 04711);
    expect_refused(run_as(kOther, roots), 125, roots + " is set-user-ID (to uid 0)" + kConsequence);
}

TEST_F(RefusalRights, AProgramThatCannotBeReadRuns) {
    // Its own process cannot be dumped then, but the loader does heed LD_PRELOAD.
    expect_runs(run_as(kOther, program("secret", 0, 0, 0711)));
}

TEST_F(RefusalRights, SetGroupId) {
    const std::string others = program("setgid", 0, kOther, 02755);
    expect_refused(run_as(0, others), 125, others + " is set-group-ID (to gid 54321)" + kConsequence);
    expect_runs(run_as(kOther, others));
    expect_runs(run_as(0, program("setgid-locking", 0, kOther, 02745))); // the kernel ignores it without g+x
}

TEST_F(RefusalRights, ScriptsAreNotSetUserId) {
    const std::string script = place().write("setuid-script", "#!" + kProbe + " loaded\n");
    ASSERT_EQ(chown(script.c_str(), kOther, 0), 0);
    ASSERT_EQ(chmod(script.c_str(), 04755), 0);
    expect_runs(place().run({script}));
    const std::string interpreter = program("setuid-interpreter", kOther, 0, 04755);
    const std::string other = place().write("setuid-by-interpreter", "#!" + interpreter + "\n");
    expect_refused(place().run({other}), 125,
                   "the interpreter " + interpreter + " of " + other + " is set-user-ID (to uid 54321)" +
                       kConsequence);
}

TEST_F(RefusalRights, FileCapabilities) {
    const std::string able = program("capable", 0, 0, 0755);
    vfs_cap_data data{};
    data.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
    data.data[0].permitted = 1u << CAP_NET_BIND_SERVICE;
    if (setxattr(able.c_str(), "security.capability", &data, sizeof data, 0) != 0)
        GTEST_SKIP() << "the temporary folder's file system takes no file capabilities: "
                     << std::strerror(errno);
    expect_refused(run_as(kOther, able), 125, able + " has file capabilities" + kConsequence);
    expect_runs(run_as(0, able)); // root gains nothing by them
}

// --- sanitizers --------------------------------------------------------------------------------------------------

void expect_without_cache(const std::string &program, const std::string &built_with) {
    const World world = with({{"LD_PRELOAD", "libm.so.6:" + place().library()}});
    const Ended quiet = place().run({program, "env", "LD_PRELOAD"}, world);
    EXPECT_EQ(quiet.out, "LD_PRELOAD=libm.so.6\n");
    EXPECT_EQ(quiet.err, "");
    const std::string line =
        "thrum: " + program + " is built with " + built_with + ", so it runs without the cache\n";
    const Ended option = place().run({"--verbose", program, "loaded"});
    EXPECT_EQ(option.out, "no");
    EXPECT_EQ(option.err, line);
    for (const char *variable : {"THRUM_VERBOSE", "THRUM_CACHE_VERBOSE"})
        EXPECT_EQ(place().run({program, "loaded"}, with({{variable, "1"}})).err, line) << variable;
}

TEST(Refusal, SanitizedProgramsRunWithoutTheCache) {
    expect_without_cache(CLI_PROBE_ASAN_SHARED, "AddressSanitizer (libasan.so)");
    expect_without_cache(CLI_PROBE_ASAN_LINKED, "AddressSanitizer (linked in)");
}

} // namespace
