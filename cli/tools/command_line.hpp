// SPDX-License-Identifier: Apache-2.0
//
// The command line: subcommands, their options and their help. A front for CLI11, whose headers take longer to compile than
// all of the rest of a subcommand: only command_line.cpp and the benchmarks' options.cpp include them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace thrum {

// What is wrong with the command line, in our words where CLI11's would puzzle.
std::string describe(const CLI::App &app, const CLI::ParseError &error);

// What the help says of a command, besides its options.
struct Explanation {
    std::string name;
    std::string about;
    std::string usage; // without "Usage: "
    std::string footer;
};

// A subcommand. As long as the CommandLine it was added to.
class Command {
  public:
    using Take = std::function<void(const std::string &)>;

    explicit Command(CLI::App &app) : app_(&app) {}

    // An option without a value. `names` are as in "-b,--backtrace".
    void flag(const std::string &names, const std::string &help, bool &flag);
    void flag(const std::string &names, const std::string &help, const std::function<void()> &take);

    // An option with a value; the last one counts. `take` checks it as it is read, before the program is looked for: after
    // a slip like "-n ./program" the program is another.
    void value(const std::string &names, const std::string &type, const std::string &help, const Take &take);

    // A word that is no option.
    void word(const std::string &name, const std::string &help, std::string &value);

    // What comes behind the options that are known is a program with its arguments (words()).
    void takes_program();

    // What is done when all has been read.
    void then(const std::function<void()> &action);

    const std::string &name() const;
    std::vector<std::string> words() const;
    bool has(const std::string &option) const; // on the command line

  private:
    CLI::App *app_;
};

class CommandLine {
  public:
    CommandLine(const Explanation &program, const std::string &version);
    ~CommandLine();

    Command add(const Explanation &explanation);

    // `help COMMAND`.
    void add_help();

    // Reads the words and does what they ask for. What is wrong, with them or with what they ask for (Failure), is one
    // line on stderr. Returns the exit code.
    int run(int argc, char **argv);
    // The signal that the process dies of after that (Interrupted); 0: none.
    int signal() const { return signal_; }

  private:
    std::unique_ptr<CLI::App> app_;
    std::string version_;
    int signal_ = 0;
};

} // namespace thrum
