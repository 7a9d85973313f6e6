# SPDX-License-Identifier: Apache-2.0
#
# Tests of the sources' order and of the build's products, as opposed to of what they do (tests/).
add_test(NAME build.layers
         COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-layers.sh" "${PROJECT_SOURCE_DIR}")
add_test(NAME build.layers.faults
         COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-layers-test.sh" "${PROJECT_SOURCE_DIR}")
add_test(NAME build.contexts.faults
         COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-contexts-test.sh" "${PROJECT_SOURCE_DIR}")
add_test(NAME build.pairings
         COMMAND python3 "${PROJECT_SOURCE_DIR}/scripts/check-pairings.py" "${PROJECT_SOURCE_DIR}")
add_test(NAME build.pairings.faults
         COMMAND python3 "${PROJECT_SOURCE_DIR}/scripts/check-pairings-test.py" "${PROJECT_SOURCE_DIR}")
add_test(NAME build.docs
         COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-docs.sh" "${PROJECT_SOURCE_DIR}")
add_test(NAME build.long-tests
         COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-slowest.sh" "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
set_tests_properties(build.layers build.layers.faults build.contexts.faults build.pairings build.pairings.faults
                     build.docs build.long-tests PROPERTIES LABELS unit)
set_tests_properties(build.contexts.faults PROPERTIES SKIP_RETURN_CODE 77)

foreach(name cache stat)
    if(TARGET thrum-${name})
        add_test(NAME build.${name}-needs-libc-only
                 COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-needed.sh"
                         "$<TARGET_FILE:thrum-${name}>" "${CMAKE_READELF}")
        add_test(NAME build.${name}-exports
                 COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-exports.sh"
                         "$<TARGET_FILE:thrum-${name}>" "${${name}_map}" "${CMAKE_READELF}")
        set_tests_properties(build.${name}-needs-libc-only build.${name}-exports PROPERTIES LABELS unit)
    endif()
endforeach()

if(TARGET thrum_ult AND NOT THRUM_SANITIZE)
    add_test(NAME build.calls
             COMMAND python3 "${PROJECT_SOURCE_DIR}/scripts/check-calls.py" "${PROJECT_SOURCE_DIR}" "${CMAKE_NM}"
                     $<TARGET_OBJECTS:thrum_ult>
             COMMAND_EXPAND_LISTS)
    # That it finds what is against the order.
    add_test(NAME build.calls.faults
             COMMAND python3 "${PROJECT_SOURCE_DIR}/scripts/check-calls-test.py" "${PROJECT_SOURCE_DIR}" "${CMAKE_NM}"
                     $<TARGET_OBJECTS:thrum_ult>
             COMMAND_EXPAND_LISTS)
    set_tests_properties(build.calls build.calls.faults PROPERTIES LABELS unit)
    # Of the build that is delivered; the disassembly of others is not what it knows.
    if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
        foreach(check signals signals-test)
            string(REPLACE signals-test signals.faults test ${check})
            add_test(NAME build.${test}
                     COMMAND python3 "${PROJECT_SOURCE_DIR}/scripts/check-${check}.py" "${PROJECT_SOURCE_DIR}"
                             "${CMAKE_OBJDUMP}" $<TARGET_OBJECTS:thrum_ult>
                     COMMAND_EXPAND_LISTS)
            set_tests_properties(build.${test} PROPERTIES LABELS unit)
        endforeach()
    endif()
endif()

if(TARGET thrum-ult)
    set(ult_in_libcs_place pthread_exit thrd_exit execve execv execvp execvpe execl execlp execle fexecve execveat
        posix_spawn posix_spawnp system popen pclose swapcontext setcontext
        pthread_sigmask sigprocmask siglongjmp longjmp _longjmp __longjmp_chk
        pthread_getaffinity_np pthread_getattr_np pthread_getcpuclockid pthread_getschedparam pthread_setaffinity_np
        pthread_setschedparam pthread_setschedprio pthread_sigqueue clock_gettime)
    include(CheckFunctionExists)
    check_function_exists(pidfd_spawn THRUM_HAVE_PIDFD_SPAWN) # since glibc 2.39
    if(THRUM_HAVE_PIDFD_SPAWN)
        list(APPEND ult_in_libcs_place pidfd_spawn pidfd_spawnp)
    endif()
    check_function_exists(_Fork THRUM_HAVE_FORK_ALONE) # since glibc 2.34
    if(THRUM_HAVE_FORK_ALONE)
        list(APPEND ult_in_libcs_place _Fork)
    endif()
    add_test(NAME build.ult-exports
             COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-exports.sh"
                     "$<TARGET_FILE:thrum-ult>" "${ult_map}" "${CMAKE_READELF}" ${ult_in_libcs_place})
    set_tests_properties(build.ult-exports PROPERTIES LABELS unit)
    if(NOT THRUM_SANITIZE)
        add_test(NAME build.ult-needs-libc-only
                 COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-needed.sh"
                         "$<TARGET_FILE:thrum-ult>" "${CMAKE_READELF}" libgcc_s.so.1)
        set_tests_properties(build.ult-needs-libc-only PROPERTIES LABELS unit)
    endif()
endif()

if(TARGET thrum AND TARGET thrum-cache AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME build.install
             COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/check-install.sh"
                     "${CMAKE_COMMAND}" "${PROJECT_BINARY_DIR}")
    set_tests_properties(build.install PROPERTIES LABELS unit)
endif()
