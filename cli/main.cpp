// SPDX-License-Identifier: Apache-2.0
//
// The `thrum` command: reads the command line, hands over to the subcommand, and turns whatever goes
// wrong into one line on stderr and an exit code. Each subcommand is a file of its own (command.hpp).
#include "command.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#ifndef THRUM_VERSION
#error "THRUM_VERSION is defined by the build"
#endif

namespace {

void add_help_command(CLI::App &app) {
    auto topic = std::make_shared<std::string>();
    CLI::App *help = app.add_subcommand("help", "Show the help of thrum or of one of its commands");
    help->formatter(std::make_shared<thrum::Help>("thrum help [COMMAND]"));
    help->add_option("COMMAND", *topic, "The command to explain");
    help->callback([&app, topic] {
        if (topic->empty())
            throw CLI::CallForHelp();
        for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
            if (command->get_name() == *topic) {
                std::cout << command->help();
                return;
            }
        throw thrum::Failure(thrum::kUsage,
                             "there is no command '" + *topic + "'; thrum --help lists those there are");
    });
}

void print_line(const std::string &who, const std::string &what) {
    std::cerr << who << ": " << what << '\n';
}

// "thrum", or "thrum run" once the subcommand is known.
std::string who_speaks(const CLI::App &app) {
    const auto commands = app.get_subcommands();
    return commands.empty() ? "thrum" : "thrum " + commands.front()->get_name();
}

// The help of the command that was named, or of thrum. Not app.help(): that would explain `help` itself.
std::string help_text(const CLI::App &app) {
    const auto commands = app.get_subcommands();
    if (!commands.empty() && commands.front()->get_name() != "help")
        return commands.front()->help();
    return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
}

// What is wrong with the command line, in our words where CLI11's would puzzle.
std::string describe(const CLI::App &app, const CLI::ParseError &error) {
    const std::vector<std::string> extra = app.remaining(true);
    if (dynamic_cast<const CLI::ExtrasError *>(&error) != nullptr && !extra.empty()) {
        if (extra.front()[0] == '-')
            return "unknown option '" + extra.front() + "'";
        if (app.get_subcommands().empty())
            return "there is no command '" + extra.front() + "'";
        return "one argument too many: '" + extra.front() + "'";
    }
    const std::string no_value = " was given a disallowed flag override";
    std::string text = error.what();
    if (const std::size_t at = text.find(no_value); at != std::string::npos)
        return "--" + text.substr(0, at) + " takes no value";
    if (const std::size_t at = text.find(": 1 required "); at != std::string::npos)
        return text.substr(0, at) + " needs a value";
    return text;
}

int run_command_line(CLI::App &app, int argc, char **argv) {
    if (argc <= 1) {
        std::cerr << app.help();
        return thrum::kUsage;
    }
    try {
        app.parse(argc, argv);
        return 0;
    } catch (const CLI::CallForHelp &) {
        std::cout << help_text(app);
        return 0;
    } catch (const CLI::CallForVersion &version) {
        std::cout << version.what() << '\n';
        return 0;
    } catch (const CLI::ParseError &error) {
        print_line(who_speaks(app), describe(app, error) + "; see " + who_speaks(app) + " --help");
        return thrum::kUsage;
    } catch (const thrum::Failure &failure) {
        if (*failure.what() != '\0')
            print_line(who_speaks(app), failure.what());
        return failure.code();
    }
}

// How many of the words come before the first "--" of a command that starts a program; with others, all.
int words_before_mark(int argc, char **argv) {
    const char *const starters[] = {"run", "compare", "stat", "trace"};
    if (argc < 2 || std::none_of(std::begin(starters), std::end(starters),
                                 [argv](const char *name) { return std::strcmp(argv[1], name) == 0; }))
        return argc;
    return static_cast<int>(std::find(argv, argv + argc, std::string("--")) - argv);
}

// Standard streams that are closed: the next file that is opened would be one of them, and be written to as such. What is there
// instead fails as a closed one does, reading or writing, and is closed in programs that are executed.
void hold_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        if (open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != fd)
            throw thrum::Failure(thrum::kFailed,
                                 std::string("cannot open /dev/null: ") + std::strerror(errno));
    }
}

// A help text or a table that could not be written must not look like a success.
int after_output(int code) {
    std::cout.flush();
    if (std::cout || code != 0)
        return code;
    print_line("thrum", "cannot write to standard output");
    return thrum::kFailed;
}

} // namespace

int main(int argc, char **argv) try {
    hold_standard_streams();
    const int shown = words_before_mark(argc, argv);
    CLI::App app("Runs programs with their terminated threads kept and reused.", "thrum");
    app.formatter(std::make_shared<thrum::Help>("thrum COMMAND [OPTIONS]"));
    app.group("Commands");
    app.set_version_flag("--version", "thrum " THRUM_VERSION, "Show the version");
    app.require_subcommand(0, 1);
    app.footer("thrum help COMMAND explains a command; so do the manual pages, as thrum-run(1).");
    const std::vector<std::string> behind_mark(argv + shown, argv + argc);
    thrum::add_run(app, behind_mark);
    thrum::add_compare(app, behind_mark);
    thrum::add_stat(app, behind_mark);
    thrum::add_counters(app);
    thrum::add_ps(app);
    thrum::add_trace(app, behind_mark);
    add_help_command(app);
    return after_output(run_command_line(app, shown, argv));
} catch (const std::exception &error) {
    std::fprintf(stderr, "thrum: %s\n", error.what());
    return thrum::kFailed;
}
