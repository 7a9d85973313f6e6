# SPDX-License-Identifier: Apache-2.0
#
# What is taken from elsewhere: CLI11 and elfutils (the command) and GoogleTest (the tests), all as Debian
# packages, none needed by the libraries. For another machine's processor (a cross build) Debian
# has the headers and the sources at hand but no target libraries, so CLI11 and GoogleTest are taken from there,
# and the command does without elfutils.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(CMAKE_CROSSCOMPILING)
    # CLI11 is headers only. They are reached through a link, because /usr/include itself belongs to
    # the build machine and may not come into the search path.
    if(EXISTS /usr/include/CLI/CLI.hpp)
        set(cross_include "${PROJECT_BINARY_DIR}/cross-include")
        file(MAKE_DIRECTORY "${cross_include}")
        file(CREATE_LINK /usr/include/CLI "${cross_include}/CLI" SYMBOLIC)
        add_library(CLI11::CLI11 INTERFACE IMPORTED)
        set_target_properties(CLI11::CLI11 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${cross_include}")
    endif()
    if(THRUM_BUILD_TESTS AND EXISTS /usr/src/googletest/CMakeLists.txt)
        set(BUILD_GMOCK OFF CACHE BOOL "" FORCE)
        set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
        add_subdirectory(/usr/src/googletest "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
        if(NOT TARGET GTest::gtest)
            add_library(GTest::gtest ALIAS gtest)
            add_library(GTest::gtest_main ALIAS gtest_main)
        endif()
        set(GTest_FOUND TRUE)
    endif()
else()
    find_package(CLI11 QUIET)
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
        pkg_check_modules(LIBDW QUIET IMPORTED_TARGET libdw)
    endif()
    if(THRUM_BUILD_TESTS)
        find_package(GTest QUIET)
    endif()
endif()

if(NOT TARGET CLI11::CLI11)
    message(WARNING "CLI11 not found (Debian: libcli11-dev): bin/thrum is left out")
endif()
if(NOT TARGET PkgConfig::LIBDW)
    message(WARNING "elfutils not found (Debian: libdw-dev): bin/thrum knows neither the names of functions nor backtraces")
endif()
if(THRUM_BUILD_TESTS AND NOT TARGET GTest::gtest)
    message(WARNING "GoogleTest not found (Debian: libgtest-dev): the unit tests are left out")
endif()
