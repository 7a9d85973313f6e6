#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks what `thrum trace` wrote of the program traced.c: that it is in the Trace Event Format, and that what it says
# can have happened.
#
#   check-trace.py FILE [NAME=NUMBER...]
#
#   threads, tasklets, processes, workers   exactly so many
#   ended                                   so many of the threads come to their end (default: all)
#   stolen, parked, preempted               at least so many
#   migrated                                marks that threads were given another place, exactly
#   runs                                    of threads and tasklets, exactly
#   orphans                                 threads, but main, of which nothing says what spawned them; exactly
#   whole                                   0: events were lost; threads may have no beginning (default: 1)
import collections
import json
import sys

LEAST_SPAWNED, LEAST_WOKEN = 20, 1  # what traced.c queues, and how many sleep
GRAIN = 0.0015  # microseconds: times are rounded to nanoseconds
# Of two workers: the counter is read out of order with what one of them says to the other, and was seen to be so by 6 ns.
SKEW = 0.1
NUMBERS = {'ts', 'dur'}
NEEDED = {'X': {'name', 'cat', 'ts', 'dur', 'pid', 'tid'}, 'i': {'name', 'cat', 'ts', 's', 'pid', 'tid'},
          's': {'name', 'cat', 'ts', 'id', 'pid', 'tid'}, 'f': {'name', 'cat', 'ts', 'id', 'bp', 'pid', 'tid'},
          'M': {'name', 'args', 'pid', 'tid'}}
failures = 0


def expect(condition, *what):
    global failures
    if not condition:
        failures += 1
        if failures < 20:
            print(*what)


def check_form(events):
    for event in events:
        needed = NEEDED.get(event['ph'])
        expect(needed is not None and needed <= set(event), 'not all that it needs:', event)
        for key in NUMBERS & set(event):
            expect(isinstance(event[key], (int, float)) and event[key] >= 0, 'no time:', event)


def by_track(events, categories):
    tracks = collections.defaultdict(list)
    for event in events:
        if event['ph'] == 'X' and event['cat'] in categories:
            tracks[event['pid'], event['tid']].append(event)
    for slices in tracks.values():
        slices.sort(key=lambda slice: (slice['ts'], slice['dur']))
    return tracks


def end(slice):
    return slice['ts'] + slice['dur']


def check_apart(slices, what):
    for one, other in zip(slices, slices[1:]):
        expect(other['ts'] >= end(one) - (GRAIN if one['tid'] == other['tid'] else SKEW), what, 'overlap:', one, other)


# A tasklet runs on its own or within the run of a thread, not over its edge.
def check_tasklets(events):
    runs = by_track(events, {'thread'})
    for track, tasklets in by_track(events, {'tasklet'}).items():
        check_apart(tasklets, 'tasklets')
        for tasklet in tasklets:
            for run in runs[track]:
                apart = end(run) <= tasklet['ts'] + GRAIN or end(tasklet) <= run['ts'] + GRAIN
                inside = run['ts'] - GRAIN <= tasklet['ts'] and end(tasklet) <= end(run) + GRAIN
                expect(apart or inside, 'a tasklet over the edge of a run:', tasklet, run)


def lives(events, category):
    runs = collections.defaultdict(list)
    for event in events:
        if event['ph'] == 'X' and event['cat'] == category:
            runs[event['args']['thread']].append(event)
    for slices in runs.values():
        slices.sort(key=lambda slice: slice['ts'])
    return runs


# Begins once, first; ends at most once, last; is nowhere twice at a time; has one name.
def check_life(number, runs, whole):
    check_apart(runs, 'runs of one thread')
    expect(len({run['name'] for run in runs}) == 1, 'several names:', number, runs)
    for i, run in enumerate(runs):
        expect(run['args'].get('begins', False) == (i == 0) or not whole, 'begins elsewhere:', number, run)
        expect(run['args']['then'] not in ('ends', 'runs on') or i == len(runs) - 1, 'ends too early:', number, run)
    return runs[-1]['args']['then'] == 'ends'


# Each arrow begins and ends in a slice of its track, and not before it begins.
def check_arrows(events):
    tracks = by_track(events, {'thread', 'tasklet', 'call'})
    starts = {event['id']: event for event in events if event['ph'] == 's'}
    finishes = {event['id']: event for event in events if event['ph'] == 'f'}
    expect(set(starts) == set(finishes), 'arrows without an end')
    expect(len(starts) == sum(event['ph'] == 's' for event in events), 'two arrows of one number')
    for number, start in starts.items():
        finish = finishes[number]
        expect(start['ts'] < finish['ts'], 'backwards:', start, finish)
        for event in (start, finish):
            slices = tracks[event['pid'], event['tid']]
            expect(any(slice['ts'] <= event['ts'] <= end(slice) for slice in slices), 'from nowhere:', event)


def main():
    wanted = dict(word.split('=') for word in sys.argv[2:])
    wanted = {name: int(number) for name, number in wanted.items()}
    with open(sys.argv[1], encoding='utf-8') as file:
        trace = json.load(file)
    events = trace['traceEvents']
    whole = wanted.pop('whole', 1)
    check_form(events)
    expect((trace['otherData']['lost events'] == 0) == bool(whole), 'lost:', trace['otherData'])
    for slices in by_track(events, {'thread', 'idle'}).values():
        check_apart(slices, 'slices of a worker')
    check_tasklets(events)
    threads, tasklets = lives(events, 'thread'), lives(events, 'tasklet')
    ended = sum(check_life(number, runs, whole) for number, runs in threads.items())
    expect(all(len(runs) == 1 and check_life(number, runs, whole) for number, runs in tasklets.items()),
           'a tasklet runs once')
    check_arrows(events)

    tracks = {(event['pid'], event['tid']): event['args']['name']
              for event in events if event['ph'] == 'M' and event['name'] == 'thread_name'}
    # Where the program is slow the library trims its memory meanwhile, in a tasklet of its own: trim.c's run().
    found = {'threads': len(threads), 'tasklets': sum(runs[0]['name'] != 'run' for runs in tasklets.values()),
             'ended': ended,
             'processes': len({pid for pid, _ in tracks}),
             'workers': sum(name.startswith('worker ') for name in tracks.values()),
             'runs': sum(map(len, threads.values())) + len(tasklets),
             'orphans': sum(runs[0]['name'] != 'main' and 'spawned by' not in runs[0]['args']
                            for runs in threads.values())}
    marks = collections.Counter(event['name'] for event in events if event['ph'] == 'i')
    arrows = collections.Counter(event['name'] for event in events if event['ph'] == 's')
    ways = collections.Counter(run['args']['then'] for runs in threads.values() for run in runs)
    found['migrated'] = marks['migrate']
    least = {'stolen': marks['steal'], 'preempted': ways['is preempted'],
             'parked': sum(event['name'] == 'parked' for event in events if event['ph'] == 'X'),
             'arrows to spawned threads': arrows['spawn'], 'woken threads': arrows['wake'] + marks['wake']}
    if whole:
        wanted |= {'arrows to spawned threads': LEAST_SPAWNED, 'woken threads': LEAST_WOKEN}
        expect(all(ways[way] > 0 for way in ('waits', 'yields', 'spawns', 'ends')), 'ways to leave:', ways)
    wanted.setdefault('ended', found['threads'] if whole else found['ended'])
    for name, number in wanted.items():
        if name in least:
            expect(least[name] >= number, name, least[name], 'where at least', number, 'are expected')
        else:
            expect(found[name] == number, name, found[name], 'where', number, 'are expected')
    names = {event['name'] for event in events if event['ph'] == 'X'}
    for name in ('yields', 'fifteen-letters', 'runs_to_its_end', 'migrates') if whole else ():
        expect(name in names, 'no slice is called', name, names)
    expect('has_a_name' not in names, 'a thread with a name goes by that of its function')
    places = {event['args'].get('function') for event in events if event['ph'] == 'X' and 'args' in event}
    expect(not whole or any(place and place.startswith('yields (traced.c:') for place in places), 'no line:', places)
    sys.exit(failures > 0)


main()
