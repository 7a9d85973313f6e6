// SPDX-License-Identifier: Apache-2.0
//
// How a symbol is written.
#include "symbols.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/text.hpp"

namespace thrum {

namespace {

std::string hexadecimal(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

// Where the brackets that open at `at` close, or the end.
std::size_t closing(const std::string &name, std::size_t at) {
    int depth = 0;
    for (; at < name.size(); at++) {
        const char c = name[at];
        depth += c == '<' || c == '(' || c == '{' || c == '[' ? 1 : 0;
        depth -= c == '>' || c == ')' || c == '}' || c == ']' ? 1 : 0;
        if (depth == 0)
            break;
    }
    return at;
}

bool has_at(const std::string &text, std::size_t at, const char *piece) {
    return text.compare(at, std::strlen(piece), piece) == 0;
}

// Is what follows the parameters no part of the name: nothing, a qualifier, or a compiler's remark?
bool is_over(const std::string &name, std::size_t at) {
    return at >= name.size() || has_at(name, at, " const") || has_at(name, at, " &") ||
           has_at(name, at, " [");
}

// A method of Rust begins with the type in brackets: "<T>::f", "<T as Trait>::f". Of it, what is within, up to the " as ".
std::string receiver_of(const std::string &name) {
    const std::size_t close = closing(name, 0);
    std::size_t end = 1;
    while (end < close && !has_at(name, end, " as "))
        end = std::string("<({[").find(name[end]) == std::string::npos ? end + 1 : closing(name, end) + 1;
    return name.substr(1, std::min(end, close) - 1);
}

// Of "void *f<T>(int)::{lambda(int)#1}::operator()(int) const" the part "f::{lambda(int)#1}::operator()".
std::string without_types(const std::string &name) {
    std::string plain;
    std::size_t begin = 0;
    if (has_at(name, 0, "<") && has_at(name, closing(name, 0), ">::")) {
        const std::string receiver = receiver_of(name);
        plain = without_types(receiver);
        plain = plain.empty() ? receiver : plain;
        begin = closing(name, 0) + 1;
    }
    for (std::size_t at = begin; at < name.size(); at++) {
        const bool is_operator = ends_with(plain, "operator");
        const std::size_t close =
            std::string("<({[").find(name[at]) == std::string::npos ? at : closing(name, at);
        // A Go method of a pointer: "sync.(*Mutex).Lock".
        const bool is_receiver = has_at(name, at, "(*") && !plain.empty() && plain.back() == '.';
        if (name[at] == ' ' && !is_operator) {
            plain.clear(); // it was the type of the result
        } else if (is_receiver || name[at] == '{' || has_at(name, at, "(anonymous namespace)") ||
                   (is_operator && has_at(name, at, "()"))) {
            plain += name.substr(at, close + 1 - at);
        } else if (name[at] == '(') {
            if (is_over(name, close + 1))
                break;
        } else if (name[at] != '<' || is_operator) {
            plain += name[at];
            continue;
        } else if (ends_with(plain, "::")) { // Rust's "f::<T>"
            plain.resize(plain.size() - 2);
        }
        at = close;
    }
    return plain.substr(std::min(plain.find_first_not_of("*&"), plain.size()));
}

// "A" of "f<A, B>(...)"; empty: it is made from no template.
std::string first_argument(const std::string &name) {
    const std::size_t open = name.find('<');
    if (open == std::string::npos)
        return "";
    std::size_t end = open + 1;
    while (end < name.size() && name[end] != ',' && name[end] != '>')
        end = std::string("<({[").find(name[end]) == std::string::npos ? end + 1 : closing(name, end) + 1;
    return name.substr(open + 1, end - open - 1);
}

// "C" of "f<A, C>::g(...)"; empty: it is made from no template.
std::string last_argument(const std::string &name) {
    const std::size_t open = name.find('<');
    if (open == std::string::npos)
        return "";
    const std::size_t close = closing(name, open);
    std::size_t begin = open + 1;
    for (std::size_t at = begin; at < close; at++)
        if (name[at] == ',')
            begin = name.find_first_not_of(' ', at + 1);
        else if (std::string("<({[").find(name[at]) != std::string::npos)
            at = closing(name, at);
    return begin < close ? name.substr(begin, close - begin) : "";
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// What a thread of <thrum/thrum.hpp> was made to run: the first argument of the template of ours that calls it, which
// may be made from another in turn, and a reference to what it refers to. For the functions of libstdc++ that a std::function
// points to, what that holds. Empty: the function is not ours, or runs nothing of the program's.
std::string callable_of(const std::string &function) {
    if (has_at(function, 0, "std::_Function_handler<"))
        return last_argument(function);
    const std::string result = "void* ";
    std::string name = has_at(function, 0, result.c_str()) ? function.substr(result.size()) : function,
                callable;
    while ((has_at(name, 0, "thrum::") || has_at(name, 0, "std::reference_wrapper<")) &&
           !(name = first_argument(name)).empty() && !is_digit(name[0]))
        callable = name;
    const std::string constant = " const";
    if (ends_with(callable, constant.c_str()))
        callable.resize(callable.size() - constant.size());
    return has_at(callable, 0, "thrum::detail::") ? "" : callable; // ours, too
}

} // namespace

std::string short_name(const Symbol &symbol) {
    const std::string callable = callable_of(symbol.function);
    const std::string name = callable.empty() ? symbol.function : callable, plain = without_types(name);
    return plain.empty() ? name : plain;
}

bool is_holder_of_function(const std::string &name) {
    return name == "std::function" || name.find("::*)(") != std::string::npos ||
           name.find("(*)(") != std::string::npos || name.find("(&)(") != std::string::npos ||
           name.find("(*&)(") != std::string::npos;
}

std::string describe(const Symbol &symbol, std::uint64_t address) {
    if (symbol.module.empty())
        return hexadecimal(address);
    const std::string offset = symbol.offset != 0 ? "+" + hexadecimal(symbol.offset) : "";
    if (symbol.function.empty())
        return symbol.module + offset;
    const std::string name = short_name(symbol);
    if (symbol.file.empty() || !callable_of(symbol.function).empty()) // its line is that of what calls it
        return name + offset + " in " + symbol.module;
    return name + " (" + symbol.file + ":" + std::to_string(symbol.line) + ")";
}

} // namespace thrum
