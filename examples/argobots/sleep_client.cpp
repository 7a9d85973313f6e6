// SPDX-License-Identifier: Apache-2.0
//
// Sends REQUESTS to sleep_server.cpp at once, each of which sleeps there, and waits for all answers.
//
//   sleep_client ADDRESS REQUESTS MS [stop]     stop: the server ends afterwards
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thallium.hpp>
#include <vector>

namespace tl = thallium;

int main(int argc, char **argv) {
    const int count = argc >= 4 ? std::atoi(argv[2]) : 0;
    if (count <= 0) {
        std::cerr << "Usage: sleep_client ADDRESS REQUESTS MS [stop]" << std::endl;
        return EXIT_FAILURE;
    }
    const double milliseconds = std::atof(argv[3]);
    const std::string address = argv[1];
    tl::engine engine(address.substr(0, address.find(':')), THALLIUM_CLIENT_MODE);
    const tl::remote_procedure sleep_for = engine.define("sleep_for"), stop = engine.define("stop");
    const tl::provider_handle server(engine.lookup(address), 1);

    const auto start = std::chrono::steady_clock::now();
    std::vector<tl::async_response> responses;
    for (int i = 0; i < count; i++)
        responses.push_back(sleep_for.on(server).async(milliseconds));
    int errors = 0;
    for (tl::async_response &response : responses) {
        const int answer = response.wait();
        errors += answer != 0;
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    std::cout << count << " requests of " << milliseconds << " ms: " << passed.count() << " s, " << errors
              << " errors" << std::endl;
    if (argc >= 5 && std::strcmp(argv[4], "stop") == 0) {
        const int answer = stop.on(server)();
        errors += answer != 0;
    }
    return errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
