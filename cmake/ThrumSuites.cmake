# SPDX-License-Identifier: Apache-2.0
#
# thrum_suites(VARIABLE FILE...): the names of the GoogleTest suites in these sources, for a ctest test of each. A new suite needs
# no line in a CMake file.
#
# THRUM_ALL_SKIPPED: GoogleTest's last lines where no test of a suite ran, for SKIP_REGULAR_EXPRESSION. ctest takes a match for more
# than the exit status, and a suite all of whose tests fail says "0 tests" passed as well.

set(THRUM_ALL_SKIPPED "\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\] [^\n]*\n)*$")

function(thrum_suites variable)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
    set(suites "")
    foreach(file IN LISTS ARGN)
        file(STRINGS "${file}" lines REGEX "^TEST(_F|_P)?\\(")
        foreach(line IN LISTS lines)
            string(REGEX REPLACE "^TEST[_FP]*\\(([A-Za-z0-9_]+).*" "\\1" suite "${line}")
            list(APPEND suites ${suite})
        endforeach()
    endforeach()
    list(REMOVE_DUPLICATES suites)
    set(${variable} ${suites} PARENT_SCOPE)
endfunction()
