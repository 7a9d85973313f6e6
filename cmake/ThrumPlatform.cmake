# SPDX-License-Identifier: Apache-2.0
#
# Which machine the build is for. Sets THRUM_ARCH to the name of the folder under src/arch, and
# refuses everything that thrum has no such folder for, in one line.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "thrum runs on Linux only, not on ${CMAKE_SYSTEM_NAME}")
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(THRUM_ARCH x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(THRUM_ARCH aarch64)
else()
    math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
    message(FATAL_ERROR "thrum supports x86-64 and aarch64, not ${CMAKE_SYSTEM_PROCESSOR} (${bits} bits)")
endif()
