// SPDX-License-Identifier: Apache-2.0
#include "documents.hpp"

#include <gtest/gtest.h>

#include "place.hpp"

namespace {

const char *const kCheckPage = R"(
import html.parser, sys
class Page(html.parser.HTMLParser):
    open = []
    seen = set()
    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        names = {name for name, value in attributes}
        assert not names & {'src', 'href', 'srcset', 'style', 'onload', 'onclick'}, (tag, names)
        if tag not in ('meta', 'link', 'br'):
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        assert tag in ('line', 'circle', 'rect', 'polyline'), tag
        self.seen.add(tag)
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag
text = sys.stdin.read()
page = Page()
page.feed(text)
page.close()
assert page.open == [], page.open
assert not page.seen & {'script', 'link', 'img', 'iframe', 'object', 'b'}, page.seen
assert {'html', 'title', 'svg', 'table'} <= page.seen, page.seen
for word in ('http', 'url(', '@import', '//'):
    assert word not in text, word
print('sound', end='')
)";

} // namespace

std::string python(const std::string &program, const std::string &input) {
    // From a file, for there may be more of it than a pipe holds.
    const std::string file = place().write("document", input, 0644);
    const Ended ended = spawn({"/bin/sh", "-c", "exec python3 -c \"$0\" <\"$1\"", program, file});
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.code(), 0) << input;
    return ended.out;
}

std::string json_value(const std::string &json, const std::string &expression) {
    return python("import json, sys; d = json.load(sys.stdin); print(" + expression + ", end='')", json);
}

void expect_sound_page(const std::string &page) {
    EXPECT_EQ(python(kCheckPage, page), "sound");
}
