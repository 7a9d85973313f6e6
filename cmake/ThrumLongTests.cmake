# SPDX-License-Identifier: Apache-2.0
#
# thrum_takes_long(REASON TEST...): these tests take over 20 seconds where others run beside them, and why. ./test prints the
# reason of each of them that is among its slowest (scripts/slowest.sh); test build.long-tests checks that they exist.

function(thrum_takes_long reason)
    foreach(test IN LISTS ARGN)
        set_property(GLOBAL APPEND_STRING PROPERTY thrum_long_tests "${test}: ${reason}\n")
    endforeach()
endfunction()

# Last, when all tests are known.
function(thrum_write_long_tests)
    get_property(list GLOBAL PROPERTY thrum_long_tests)
    file(WRITE "${PROJECT_BINARY_DIR}/long-tests.txt" "${list}")
endfunction()
