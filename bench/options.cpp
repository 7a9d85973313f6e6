// SPDX-License-Identifier: Apache-2.0
//
// A benchmark's options, and its main().
#include <CLI/CLI.hpp>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "common.hpp"
#include "tools/command_line.hpp"

namespace bench {

namespace {

std::string plain(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

double number_of(const Number &number, const std::string &text) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= number.least && value <= number.most))
        throw Failure(std::string(number.option) + " takes a number from " + plain(number.least) + " to " +
                          plain(number.most) + ", not '" + text + "'",
                      Failure::kUsage);
    return value;
}

std::string absolute(const std::string &path) {
    char full[PATH_MAX];
    if (realpath(path.c_str(), full) == nullptr)
        throw Failure(path + ": " + std::strerror(errno) + "; build it first, or say --library PATH");
    if (std::strpbrk(full, " :") != nullptr)
        throw Failure(std::string(full) + ": the loader takes no path with a space or a colon in LD_PRELOAD");
    return full;
}

std::string sizes_of(const Number &number) {
    return std::string(number.help) + " (" + plain(number.usual) + "; quick " + plain(number.quick) +
           ", full " + plain(number.full) + ")";
}

Options read_options(int argc, char **argv, const Description &description) {
    CLI::App app(description.about, description.name);
    Options options;
    bool full = false;
    std::vector<std::string> given(description.numbers.size());
    options.name = description.name;
    app.add_flag("--json", options.json, "Print JSON instead of tables")->disable_flag_override();
    app.add_option("--save", options.save, "Write JSON into a file, besides what is printed")
        ->option_text("FILE");
    CLI::Option *little =
        app.add_flag("--quick", options.quick, "A taste, to see that it works; not for publishing");
    little->disable_flag_override();
    app.add_flag("--full", full, "Longer than usual")->excludes(little)->disable_flag_override();
    if (description.measures_library) {
        options.library = beside(std::string("../lib/") + description.library);
        app.add_option("--library", options.library,
                       std::string("The ") + description.library + " to measure (of the same build)")
            ->option_text("PATH");
    }
    std::vector<CLI::Option *> flags;
    for (const Flag &flag : description.flags)
        flags.push_back(app.add_flag(flag.option, flag.help)->disable_flag_override());
    for (std::size_t i = 0; i < given.size(); i++)
        app.add_option(description.numbers[i].option, given[i], sizes_of(description.numbers[i]))
            ->option_text("N")
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    options.texts.reserve(description.texts.size());
    for (const Text &text : description.texts) {
        options.texts.push_back(text.value);
        app.add_option(text.option, options.texts.back(), text.help)->option_text(text.placeholder);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp &) {
        std::cout << app.help();
        std::exit(0);
    } catch (const CLI::ParseError &error) {
        throw Failure(thrum::describe(app, error) + "; see " + description.name + " --help", Failure::kUsage);
    }
    for (std::size_t i = 0; i < given.size(); i++) {
        const Number &number = description.numbers[i];
        const double usual = options.quick ? number.quick : full ? number.full : number.usual;
        options.numbers.push_back(given[i].empty() ? usual : number_of(number, given[i]));
        options.settings.emplace_back(number.option + 2, options.numbers.back());
    }
    for (const CLI::Option *flag : flags)
        options.flags.push_back(flag->count() > 0);
    for (std::size_t i = 0; i < description.flags.size(); i++)
        options.check =
            options.check || (description.flags[i].option == std::string(kCheck.option) && options.flags[i]);
    if (description.measures_library)
        options.library = absolute(options.library);
    if (!options.save.empty() && !std::ofstream(options.save)) // now, and not when all has been measured
        throw Failure(options.save + ": " + std::strerror(errno));
    return options;
}

} // namespace

std::vector<unsigned> numbers_listed(const std::string &option, const std::string &list, unsigned least,
                                     unsigned most) {
    std::vector<unsigned> numbers;
    std::istringstream words(list + ","); // a comma at its end is one too many
    for (std::string word; std::getline(words, word, ',');) {
        const bool digits = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
        const unsigned long number = digits ? std::strtoul(word.c_str(), nullptr, 10) : most + 1UL;
        if (number < least || number > most)
            throw Failure(option + " takes numbers from " + std::to_string(least) + " to " +
                              std::to_string(most) + " with commas in between, not '" + list + "'",
                          Failure::kUsage);
        numbers.push_back(static_cast<unsigned>(number));
    }
    return numbers;
}

int main_of(int argc, char **argv, const Description &description, const Body &body, const Work &work) {
    try {
        if (work != nullptr && argc > 1 && std::strcmp(argv[1], kWork) == 0)
            work(std::vector<std::string>(argv + 2, argv + argc));
        else
            body(read_options(argc, argv, description));
        std::cout.flush();
        if (!std::cout)
            throw Failure("cannot write to standard output");
        return 0;
    } catch (const Failure &failure) {
        std::fprintf(stderr, "%s: %s\n", description.name, failure.what());
        return failure.code();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: %s\n", description.name, error.what());
        return 1;
    }
}

} // namespace bench
