# SPDX-License-Identifier: Apache-2.0
#
# Compiler flags, as functions that a target is given to. Used by the root CMakeLists.txt and by
# tests/ and bench/:
#
#   thrum_add_core(NAME SOURCES...)  an object library made like src/ is made
#   thrum_core_options(TARGET)       C17, warnings, hidden visibility, unwind tables
#   thrum_cxx_options(TARGET)        C++17, warnings, the include paths
#   thrum_debug_variant(TARGET)      assertions and THRUM_SKIP for one target of a build that has none
#   thrum_variant(VARIANT)           how the targets and tests of a variant are called
#   thrum_sanitize(TARGET)           adds -fsanitize=$THRUM_SANITIZE, to compiling and to linking
#   thrum_precompile(TARGET)         reads the standard library's headers once, and not for each file; after all other flags
#   thrum_precompile_gtest(TARGET)   those of GoogleTest
#   thrum_quick_gtest(TARGET)        that, and less is made of tests whose own code is not what is tested
#
# NDEBUG is never defined: the core has assertions of its own (THRUM_DEBUG), and a test that uses
# assert() has to mean it in every build.

set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
if(NOT CMAKE_BUILD_TYPE AND PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "RelWithDebInfo or Debug" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON) # a change inside a shared library links no program again
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Reproducible: two checkouts in two folders give the same bytes (scripts/check-reproducible.sh).
# The build folder comes last, so that it wins over the source folder that it may stand in.
add_compile_options(
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=."
    "-ffile-prefix-map=${PROJECT_BINARY_DIR}=./build")
# clang 14 writes an assembler file's own path into its line table, whatever the mapping says.
add_compile_options("$<$<COMPILE_LANG_AND_ID:ASM,Clang>:-g0>")

set(thrum_warnings -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wundef -Wvla -Wwrite-strings)
set(thrum_c_warnings -Wstrict-prototypes -Wold-style-definition -Wmissing-prototypes)
set(thrum_cxx_warnings -Wnon-virtual-dtor -Woverloaded-virtual)
# Pragmas in the sources name gcc's warnings, which clang need not know.
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    list(APPEND thrum_warnings -Wno-unknown-warning-option)
endif()

# For code that runs on a thread's stack of libthrum's: it touches each page on its way down, and so the guard below.
include(CheckCCompilerFlag)
check_c_compiler_flag(-fstack-clash-protection THRUM_HAVE_STACK_CLASH_PROTECTION)
set(THRUM_STACK_FLAGS_PC "")
if(THRUM_HAVE_STACK_CLASH_PROTECTION)
    set(THRUM_STACK_FLAGS_PC " -fstack-clash-protection")
endif()

function(thrum_includes target)
    target_include_directories(${target} PUBLIC
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
        "${PROJECT_SOURCE_DIR}/src/arch/${THRUM_ARCH}")
    # Empty, as a plain "#define _GNU_SOURCE" in a file makes it, so that both may stand side by side.
    target_compile_options(${target} PUBLIC "$<$<COMPILE_LANGUAGE:C>:-D_GNU_SOURCE=>")
    if(THRUM_DEBUG)
        target_compile_definitions(${target} PUBLIC THRUM_DEBUG=1)
    endif()
endfunction()

# -fexceptions with asynchronous unwind tables: cancellation and pthread_exit unwind through these
# frames. initial-exec: the library is loaded at start, and reading a thread-local may not allocate.
function(thrum_core_options target)
    thrum_includes(${target})
    target_compile_options(${target} PRIVATE
        ${thrum_warnings}
        "$<$<COMPILE_LANGUAGE:C>:${thrum_c_warnings}>"
        "$<$<COMPILE_LANGUAGE:C>:-fexceptions;-fasynchronous-unwind-tables>"
        "$<$<COMPILE_LANGUAGE:C>:-ftls-model=initial-exec;-fno-common>")
    set_target_properties(${target} PROPERTIES
        C_STANDARD 17 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
        C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
endfunction()

function(thrum_add_core name)
    add_library(${name} OBJECT ${ARGN})
    thrum_core_options(${name})
endfunction()

# In a build without THRUM_DEBUG: what that changes, for one target.
function(thrum_debug_variant target)
    target_compile_definitions(${target} PRIVATE THRUM_DEBUG=1)
    target_compile_options(${target} PRIVATE -O1 -fno-omit-frame-pointer)
endfunction()

# What tests are registered for: the libraries as this build makes them (own) and, with THRUM_WITH_DEBUG, their second
# variant. thrum_variant(VARIANT) sets in the caller:
#   suffix     of the targets' names: "" or -debug
#   prefix     of the tests' names: "" or debug.
#   also       what follows their labels: "" or ;debug
#   checked    whether that variant has assertions and THRUM_SKIP
set(THRUM_VARIANTS own)
if(THRUM_WITH_DEBUG)
    list(APPEND THRUM_VARIANTS debug)
endif()
function(thrum_variant variant)
    if(variant STREQUAL "debug")
        set(suffix "-debug" PARENT_SCOPE)
        set(prefix "debug." PARENT_SCOPE)
        set(also ";debug" PARENT_SCOPE)
        set(checked ON PARENT_SCOPE)
    else()
        set(suffix "" PARENT_SCOPE)
        set(prefix "" PARENT_SCOPE)
        set(also "" PARENT_SCOPE)
        set(checked ${THRUM_DEBUG} PARENT_SCOPE)
    endif()
endfunction()

function(thrum_cxx_options target)
    thrum_includes(${target})
    target_compile_options(${target} PRIVATE ${thrum_warnings} ${thrum_cxx_warnings})
    set_target_properties(${target} PROPERTIES
        CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS ON)
endfunction()

function(thrum_sanitize target)
    if(THRUM_SANITIZE)
        target_compile_options(${target} PRIVATE
            "-fsanitize=${THRUM_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
        if(THRUM_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
            # That TSan does not see stand-alone fences is known (docs/reference/building.md), no news per file.
            target_compile_options(${target} PRIVATE -Wno-tsan)
        endif()
        if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
            # gcc's manual: sanitizers make it give false ones; <regex> of gcc 12 does.
            target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
        endif()
        target_link_options(${target} PUBLIC "-fsanitize=${THRUM_SANITIZE}")
    endif()
endfunction()

function(thrum_precompile target)
    target_precompile_headers(${target} PRIVATE <algorithm> <cstdint> <cstring> <functional> <map> <memory> <optional>
        <sstream> <string> <vector>)
endfunction()

function(thrum_precompile_gtest target)
    target_precompile_headers(${target} PRIVATE
        "$<$<COMPILE_LANGUAGE:CXX>:<gtest/gtest.h$<ANGLE-R>>"
        "$<$<COMPILE_LANGUAGE:CXX>:<functional$<ANGLE-R>>"
        "$<$<COMPILE_LANGUAGE:CXX>:<thread$<ANGLE-R>>")
endfunction()

# What GoogleTest makes of a test takes three times as long to compile at -O2 with all that a debugger could ask for. What is
# tested is compiled elsewhere, and functions and lines are enough of the test itself; the debug build has the rest.
function(thrum_quick_gtest target)
    target_compile_options(${target} PRIVATE
        "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo>>:-O0;-g1>")
    thrum_precompile_gtest(${target})
endfunction()
