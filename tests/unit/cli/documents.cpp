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

const char *const kCheckTrace = R"(
import collections, decimal, json, sys
def members(pairs):
    assert len(pairs) == len({name for name, value in pairs}), pairs
    return dict(pairs)
def refuse(word):
    raise AssertionError('no number of JSON: ' + word)
def is_whole(value):
    return type(value) is int and (0 <= value < 1 << 32 or is_made_up)
def is_time(value):
    return type(value) in (int, decimal.Decimal) and value >= 0
def is_text(value):
    return type(value) is str and value != ''
is_made_up = sys.argv[1:] == ['made up']
text = sys.stdin.buffer.read().decode('utf-8')
trace = json.loads(text, object_pairs_hook=members, parse_constant=refuse, parse_float=decimal.Decimal)
assert list(trace) == ['displayTimeUnit', 'traceEvents', 'otherData'], list(trace)
assert trace['displayTimeUnit'] == 'ms'
assert set(trace['otherData']) == {'version', 'command', 'verdict'}, trace['otherData']
assert all(type(value) is str for value in trace['otherData'].values())
assert type(trace['traceEvents']) is list
needed = {'X': {'ph', 'pid', 'tid', 'name', 'args', 'cat', 'ts', 'dur'}, 'M': {'ph', 'pid', 'tid', 'name', 'args'}}
metadata = {'process_name': ('name', str), 'thread_name': ('name', str), 'thread_sort_index': ('sort_index', int)}
doings = ('running', 'runnable', 'lock wait', 'join wait', 'idle wait', 'sleep', 'input and output', 'kernel')
told, tracks = collections.Counter(), collections.defaultdict(list)
for event in trace['traceEvents']:
    assert type(event) is dict and event.get('ph') in needed and set(event) == needed[event['ph']], event
    assert is_whole(event['pid']) and is_whole(event['tid']) and is_text(event['name']), event
    assert type(event['args']) is dict, event
    name, thread, arguments = event['name'], event['tid'], event['args']
    if event['ph'] == 'M':
        member, kind = metadata[name]
        assert list(arguments) == [member] and type(arguments[member]) is kind, event
        told[name, thread if name != 'process_name' else None] += 1
        continue
    assert is_time(event['ts']) and is_time(event['dur']), event
    assert set(arguments) <= {'stack', 'lock'} and all(map(is_text, arguments.values())), event
    assert 'lock' not in arguments or (event['cat'] == 'lock_wait' and 'stack' in arguments), event
    if not is_made_up:
        doing = name.split(':')[0]
        assert doing in doings and event['cat'] == doing.replace(' and ', ' ').replace(' ', '_'), event
        assert told['thread_name', thread] == told['thread_sort_index', thread] == 1, event
    tracks[thread].append(event)
assert len({event['pid'] for event in trace['traceEvents']}) == 1
assert trace['traceEvents'][0]['name'] == 'process_name'
assert is_made_up or set(told.values()) == {1}, told
if not is_made_up:
    for slices in tracks.values():
        for one, other in zip(slices, slices[1:]):
            assert one['ts'] + one['dur'] <= other['ts'], (one, other)
print('sound', end='')
)";

} // namespace

std::string python(const std::string &program, const std::string &input, const std::string &argument) {
    // From a file, for there may be more of it than a pipe holds.
    const std::string file = place().write("document", input, 0644);
    const Ended ended =
        spawn({"/bin/sh", "-c", "exec python3 -c \"$0\" \"$2\" <\"$1\"", program, file, argument});
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

void expect_sound_trace(const std::string &trace, bool is_made_up) {
    EXPECT_EQ(python(kCheckTrace, trace, is_made_up ? "made up" : "of a run"), "sound");
}
