// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <sstream>
#include <utility>

#include "tools/failure.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr std::size_t kHelpColumn = 20; // where options are explained

// CLI11's help with a usage line of our own, because its own cannot say "-- PROG ARGS...".
class Help : public CLI::Formatter {
  public:
    explicit Help(std::string usage) : usage_(std::move(usage)) { column_width(kHelpColumn); }
    std::string make_usage(const CLI::App *, std::string) const override { return "Usage: " + usage_ + "\n"; }

  private:
    std::string usage_;
};

// Names in it may be a program's choice, as that of a script's interpreter.
void print_line(const std::string &speaker, const std::string &what) {
    std::cerr << message_for(STDERR_FILENO, speaker + ": " + terminal_text(what));
}

// "thrum", or "thrum run" once the subcommand is known.
std::string speaker_of(const CLI::App &app) {
    const auto commands = app.get_subcommands();
    return commands.empty() ? app.get_name() : app.get_name() + " " + commands.front()->get_name();
}

// The help of the command that was named, or of thrum. Not app.help(): that would explain `help` itself.
std::string help_text(const CLI::App &app) {
    const auto commands = app.get_subcommands();
    if (!commands.empty() && commands.front()->get_name() != "help")
        return commands.front()->help();
    return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
}

bool has_commands(const CLI::App &app) {
    return !app.get_subcommands([](const CLI::App *) { return true; }).empty();
}

// Where the text of a line continues in the next: below the beginning of its last column.
std::size_t hang_of(const std::string &line) {
    const std::size_t text = line.find_first_not_of(' ');
    if (text == std::string::npos)
        return 0;
    if (const std::size_t gap = line.find("  ", text); gap != std::string::npos)
        return std::min(line.find_first_not_of(' ', gap), line.size());
    return line[text] == '-' ? kHelpColumn : text;
}

// Help that is wider than its terminal, with other line breaks. Lines that nearly fill 80 columns were broken to fit in.
std::string fitted(const std::string &help, std::size_t columns) {
    const std::size_t full = 60, narrow = 4;
    std::vector<std::pair<std::string, std::size_t>> paragraphs; // and their hangs
    std::size_t widest = 0, before = 0;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line); before = line.size()) {
        widest = std::max(widest, line.size());
        const std::size_t text = line.find_first_not_of(' ');
        if (before > full && text != std::string::npos && line[text] != '[' && hang_of(line) == text &&
            paragraphs.back().second == text)
            paragraphs.back().first += ' ' + line.substr(text);
        else
            paragraphs.emplace_back(line, hang_of(line));
    }
    if (columns == 0 || widest <= columns)
        return help;
    std::string out;
    for (auto &[rest, hang] : paragraphs) {
        if (columns < 3 * kHelpColumn && hang > narrow) { // no room for two columns
            if (rest.find_first_not_of(' ') == hang)
                rest.erase(0, hang - narrow);
            hang = narrow;
        }
        while (rest.size() > columns) {
            std::size_t space = rest.rfind(' ', columns);
            if (space == std::string::npos || space <= hang)
                space = rest.find(' ', columns);
            if (space == std::string::npos)
                break;
            out += rest.substr(0, space) + '\n';
            rest = std::string(hang, ' ') + rest.substr(space + 1);
        }
        out += rest + '\n';
    }
    return out;
}

} // namespace

std::string describe(const CLI::App &app, const CLI::ParseError &error) {
    const std::vector<std::string> extra = app.remaining(true);
    if (dynamic_cast<const CLI::ExtrasError *>(&error) != nullptr && !extra.empty()) {
        if (extra.front()[0] == '-')
            return "unknown option '" + extra.front() + "'";
        if (app.get_subcommands().empty() && has_commands(app))
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

void Command::flag(const std::string &names, const std::string &help, bool &flag) {
    app_->add_flag(names, flag, help)->disable_flag_override();
}

void Command::flag(const std::string &names, const std::string &help, const std::function<void()> &take) {
    app_->add_flag_callback(names, take, help)->disable_flag_override();
}

void Command::value(const std::string &names, const std::string &type, const std::string &help,
                    const Take &take) {
    app_->add_option_function<std::string>(names, take, help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Command::word(const std::string &name, const std::string &help, std::string &value) {
    app_->add_option(name, value, help)->type_name("");
}

void Command::takes_program() {
    app_->prefix_command();
}

void Command::then(const std::function<void()> &action) {
    app_->callback(action);
}

const std::string &Command::name() const {
    return app_->get_name();
}

std::vector<std::string> Command::words() const {
    return app_->remaining();
}

bool Command::has(const std::string &option) const {
    const CLI::Option *given = app_->get_option_no_throw(option);
    return given != nullptr && given->count() != 0;
}

CommandLine::CommandLine(const Explanation &program, const std::string &version)
    : app_(std::make_unique<CLI::App>(program.about, program.name)), version_(version) {
    app_->formatter(std::make_shared<Help>(program.usage));
    app_->group("Commands");
    app_->set_version_flag("--version", version, "Show the version");
    app_->require_subcommand(0, 1);
    app_->footer(program.footer);
}

CommandLine::~CommandLine() = default;

Command CommandLine::add(const Explanation &explanation) {
    CLI::App *command = app_->add_subcommand(explanation.name, explanation.about);
    command->formatter(std::make_shared<Help>(explanation.usage));
    command->footer(explanation.footer);
    command->set_version_flag("--version", version_)->group(""); // as thrum's; not among its own options
    return Command(*command);
}

void CommandLine::add_help() {
    auto topic = std::make_shared<std::string>();
    CLI::App *help = app_->add_subcommand("help", "Show the help of thrum or of one of its commands");
    help->formatter(std::make_shared<Help>("thrum help [COMMAND]"));
    help->add_option("COMMAND", *topic, "The command to explain");
    help->callback([this, topic] {
        if (topic->empty())
            throw CLI::CallForHelp();
        for (const CLI::App *command : app_->get_subcommands([](const CLI::App *) { return true; }))
            if (command->get_name() == *topic) {
                std::cout << fitted(command->help(), terminal_columns(STDOUT_FILENO));
                return;
            }
        throw Failure(kUsage, "there is no command '" + *topic + "'; see thrum --help");
    });
}

int CommandLine::run(int argc, char **argv) {
    if (argc <= 1) {
        std::cerr << fitted(app_->help(), terminal_columns(STDERR_FILENO));
        return kUsage;
    }
    try {
        app_->parse(argc, argv);
        return 0;
    } catch (const CLI::CallForHelp &) {
        std::cout << fitted(help_text(*app_), terminal_columns(STDOUT_FILENO));
        return 0;
    } catch (const CLI::CallForVersion &version) {
        std::cout << version.what() << '\n';
        return 0;
    } catch (const CLI::ParseError &error) {
        const std::string speaker = speaker_of(*app_);
        print_line(speaker, describe(*app_, error) + "; see " + speaker + " --help");
        return kUsage;
    } catch (const Failure &failure) {
        if (*failure.what() != '\0')
            print_line(speaker_of(*app_), failure.what());
        if (const auto *interrupted = dynamic_cast<const Interrupted *>(&failure))
            signal_ = interrupted->signal();
        return failure.code();
    }
}

} // namespace thrum
