# SPDX-License-Identifier: Apache-2.0
#
# thrum_suites(VARIABLE FILE...): the names of the GoogleTest suites in these sources, for a ctest test of each. A new suite needs
# no line in a CMake file.

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
