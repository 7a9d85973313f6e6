// SPDX-License-Identifier: Apache-2.0
//
// A server of remote calls each of which sleeps as a thread of its own, with Thallium: its threads, and Margo's, are those of whichever
// Argobots it runs on. All streams share one pool. sleep_client.cpp asks it. docs/studies/casestudy.md has the same with plain sockets.
//
//   sleep_server STREAMS [PROTOCOL]     prints its address; PROTOCOL: tcp unless told
//
// On libthrum: linked with its libabt, or `thrum run --argobots -- sleep_server 4`. On the loopback alone: FI_TCP_IFACE=lo.
#include <cstdlib>
#include <iostream>
#include <string>
#include <thallium.hpp>
#include <vector>

namespace tl = thallium;

int main(int argc, char **argv) {
    const int stream_count = argc >= 2 ? std::atoi(argv[1]) : 0;
    if (stream_count <= 0) {
        std::cerr << "Usage: sleep_server STREAMS [PROTOCOL]" << std::endl;
        return EXIT_FAILURE;
    }
    tl::abt scope;
    std::vector<tl::managed<tl::xstream>> streams;
    tl::managed<tl::pool> pool = tl::pool::create(tl::pool::access::mpmc);
    for (int i = 0; i < stream_count; i++)
        streams.push_back(tl::xstream::create(tl::scheduler::predef::basic_wait, *pool));

    {
        tl::engine engine(argc >= 3 ? argv[2] : "tcp", THALLIUM_SERVER_MODE);
        engine.define(
            "sleep_for",
            [&engine](const tl::request &request, double milliseconds) {
                tl::thread::sleep(engine, milliseconds); // others run meanwhile
                request.respond(0);
            },
            1, *pool);
        engine.define(
            "stop",
            [&engine](const tl::request &request) {
                request.respond(0);
                engine.finalize();
            },
            1, *pool);
        std::cout << std::string(engine.self()) << std::endl;
        engine.wait_for_finalize();
    }
    for (auto &stream : streams)
        stream->join();
    return EXIT_SUCCESS;
}
