// SPDX-License-Identifier: Apache-2.0
#include "rust_names.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

namespace thrum {

namespace {

constexpr unsigned kDeepest = 64;      // recursion; a back reference may refer to itself
constexpr std::size_t kLongest = 4096; // back references may grow without limit

const char *basic_type(char letter) {
    static constexpr std::pair<char, const char *> types[] = {
        {'a', "i8"},   {'b', "bool"},  {'c', "char"},  {'d', "f64"}, {'e', "str"}, {'f', "f32"},
        {'h', "u8"},   {'i', "isize"}, {'j', "usize"}, {'l', "i32"}, {'m', "u32"}, {'n', "i128"},
        {'o', "u128"}, {'p', "_"},     {'s', "i16"},   {'t', "u16"}, {'u', "()"},  {'v', "..."},
        {'x', "i64"},  {'y', "u64"},   {'z', "!"},
    };
    for (const auto &[of, name] : types)
        if (of == letter)
            return name;
    return nullptr;
}

// A parser of the grammar in RFC 2603, by recursive descent. At the first thing that does not fit, or that is not known here,
// it fails for good; what it returns then does not count.
class Demangler {
  public:
    explicit Demangler(const std::string &text) : text_(text) {}

    std::string name() {
        std::string out = path(true);
        if (at_ < text_.size() && peek() != '.' && peek() != '$')
            path(false); // the crate that has instantiated it
        if (at_ < text_.size() && peek() != '.' && peek() != '$')
            failed_ = true;
        return failed_ ? "" : out;
    }

  private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    char next() {
        if (at_ >= text_.size())
            failed_ = true;
        return failed_ ? '\0' : text_[at_++];
    }
    bool eat(char wanted) {
        if (failed_ || peek() != wanted)
            return false;
        at_++;
        return true;
    }
    std::string fail() {
        failed_ = true;
        return "";
    }

    // "_" is 0, "0_" is 1, and so on.
    std::uint64_t base_62() {
        if (eat('_'))
            return 0;
        std::uint64_t number = 0;
        while (!failed_ && !eat('_')) {
            const char c = next();
            const int digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'z' ? c - 'a' + 10
                              : c >= 'A' && c <= 'Z' ? c - 'A' + 36
                                                     : -1;
            if (digit < 0 || __builtin_mul_overflow(number, std::uint64_t{62}, &number) ||
                __builtin_add_overflow(number, static_cast<std::uint64_t>(digit), &number))
                failed_ = true;
        }
        return number + 1;
    }
    // 0: none stands here.
    std::uint64_t optional_base_62(char tag) { return eat(tag) ? base_62() + 1 : 0; }

    std::string identifier(std::uint64_t *disambiguator = nullptr) {
        const std::uint64_t which = optional_base_62('s');
        if (disambiguator != nullptr)
            *disambiguator = which;
        if (eat('u'))
            return fail(); // Punycode: rare, and left as it is
        std::size_t length = 0;
        if (peek() < '0' || peek() > '9')
            return fail();
        if (!eat('0'))
            while (peek() >= '0' && peek() <= '9' && length <= kLongest)
                length = length * 10 + static_cast<std::size_t>(next() - '0');
        eat('_');
        if (length > text_.size() - at_)
            return fail();
        at_ += length;
        return text_.substr(at_ - length, length);
    }

    template <class Parse>
    std::string back_reference(Parse parse) {
        const std::size_t from = at_ - 1; // of the "B"
        const std::uint64_t to = base_62();
        if (failed_ || to >= from)
            return fail();
        const std::size_t back = std::exchange(at_, static_cast<std::size_t>(to));
        std::string out = parse();
        at_ = back;
        return out;
    }

    // `in_value`: generic arguments are written with "::" before them.
    std::string path(bool in_value) {
        if (failed_ || ++depth_ > kDeepest)
            return fail();
        std::string out = path_of(next(), in_value);
        depth_--;
        return out.size() > kLongest ? fail() : out;
    }
    std::string path_of(char tag, bool in_value) {
        switch (tag) {
        case 'C': return identifier();
        case 'M': skip_impl(); return "<" + type() + ">";
        case 'X': skip_impl(); [[fallthrough]];
        case 'Y': {
            const std::string self = type();
            return "<" + self + " as " + path(false) + ">";
        }
        case 'N': return nested(in_value);
        case 'I': {
            const std::string generic = path(in_value);
            return generic + (in_value ? "::<" : "<") + list([this] { return argument(); }) + ">";
        }
        case 'B': return back_reference([&] { return path(in_value); });
        default: return fail();
        }
    }
    void skip_impl() {
        optional_base_62('s');
        path(false);
    }
    std::string nested(bool in_value) {
        const char space = next();
        const std::string parent = path(in_value);
        std::uint64_t which = 0;
        const std::string name = identifier(&which);
        if (space >= 'a' && space <= 'z')
            return name.empty() ? parent : parent + "::" + name;
        if (space < 'A' || space > 'Z')
            return fail();
        const std::string kind = space == 'C' ? "closure" : space == 'S' ? "shim" : std::string(1, space);
        return parent + "::{" + kind + (name.empty() ? "" : ":" + name) + "#" + std::to_string(which) + "}";
    }

    // Up to the "E".
    template <class Parse>
    std::string list(Parse parse, const char *between = ", ") {
        std::string out;
        for (bool is_first = true; !failed_ && !eat('E'); is_first = false) {
            out += (is_first ? "" : between) + parse();
            if (out.size() > kLongest)
                return fail();
        }
        return out;
    }
    std::string argument() {
        if (eat('L')) {
            base_62();
            return "'_";
        }
        return eat('K') ? constant() : type();
    }

    std::string constant() {
        if (eat('p'))
            return "_";
        if (eat('B'))
            return back_reference([this] { return constant(); });
        const char kind = next();
        if (std::strchr("ahilmnostxyjbc", kind) == nullptr || kind == '\0')
            return fail();
        const bool is_negative = eat('n');
        std::uint64_t number = 0;
        while (!failed_ && !eat('_')) {
            const char c = next();
            const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
            if (digit < 0 || number >> 60 != 0)
                return fail();
            number = number * 16 + static_cast<std::uint64_t>(digit);
        }
        if (kind == 'b')
            return number != 0 ? "true" : "false";
        return (is_negative ? "-" : "") + std::to_string(number);
    }

    std::string type() {
        if (failed_ || ++depth_ > kDeepest)
            return fail();
        std::string out = type_of();
        depth_--;
        return out.size() > kLongest ? fail() : out;
    }
    std::string type_of() {
        if (const char *basic = basic_type(peek())) {
            at_++;
            return basic;
        }
        if (eat('A')) {
            const std::string element = type();
            return "[" + element + "; " + constant() + "]";
        }
        if (eat('S'))
            return "[" + type() + "]";
        if (eat('T')) {
            const std::string elements = list([this] { return type(); });
            return "(" + elements +
                   (elements.find(", ") == std::string::npos && !elements.empty() ? ",)" : ")");
        }
        if (eat('R'))
            return "&" + referred();
        if (eat('Q'))
            return "&mut " + referred();
        if (eat('P'))
            return "*const " + type();
        if (eat('O'))
            return "*mut " + type();
        if (eat('F'))
            return function();
        if (eat('D'))
            return dynamic();
        if (eat('B'))
            return back_reference([this] { return type(); });
        return path(false);
    }
    std::string referred() {
        if (eat('L'))
            base_62();
        return type();
    }
    std::string function() {
        optional_base_62('G');
        std::string out = eat('U') ? "unsafe " : "";
        if (eat('K'))
            out += "extern \"" + (eat('C') ? "C" : identifier()) + "\" ";
        out += "fn(" + list([this] { return type(); }) + ")";
        return eat('u') ? out : out + " -> " + type();
    }
    std::string dynamic() {
        optional_base_62('G');
        const std::string bounds = list(
            [this] {
                std::string bound = path(false);
                while (eat('p')) {
                    const std::string name = identifier();
                    bound += "<" + name + " = " + type() + ">";
                }
                return bound;
            },
            " + ");
        if (!eat('L'))
            return fail();
        base_62();
        return "dyn " + bounds;
    }

    const std::string text_; // behind "_R": back references count from there
    std::size_t at_ = 0;
    unsigned depth_ = 0;
    bool failed_ = false;
};

} // namespace

std::string rust_name(const std::string &mangled) {
    if (mangled.compare(0, 2, "_R") != 0 || mangled.size() < 4)
        return "";
    return Demangler(mangled.substr(2)).name();
}

std::string without_rust_hash(const std::string &demangled) {
    constexpr std::size_t kHash = 16;
    const std::size_t end = demangled.rfind("::h");
    if (end == std::string::npos || demangled.size() - end != 3 + kHash ||
        demangled.find_first_not_of("0123456789abcdef", end + 3) != std::string::npos)
        return demangled;
    static constexpr std::pair<const char *, const char *> escapes[] = {
        {"$LT$", "<"},  {"$GT$", ">"},  {"$LP$", "("},  {"$RP$", ")"},  {"$C$", ","},   {"$RF$", "&"},
        {"$BP$", "*"},  {"$SP$", "@"},  {"$u20$", " "}, {"$u27$", "'"}, {"$u5b$", "["}, {"$u5d$", "]"},
        {"$u7b$", "{"}, {"$u7d$", "}"}, {"$u7e$", "~"}, {"$u3b$", ";"}, {"$u2b$", "+"}, {"..", "::"},
    };
    std::string out;
    for (std::size_t at = 0; at < end;) {
        // A component begins with "_" where its first character is escaped.
        if (demangled[at] == '_' && at + 1 < end && demangled[at + 1] == '$' &&
            (at == 0 || demangled[at - 1] == ':'))
            at++;
        bool is_escape = false;
        for (const auto &[escape, character] : escapes)
            if (demangled.compare(at, std::strlen(escape), escape) == 0) {
                out += character;
                at += std::strlen(escape);
                is_escape = true;
                break;
            }
        if (!is_escape)
            out += demangled[at++];
    }
    return out;
}

} // namespace thrum
