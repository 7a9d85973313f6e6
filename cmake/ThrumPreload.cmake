# SPDX-License-Identifier: Apache-2.0
#
# Beside the preloaded libraries: lib/thrum/PLATFORM/, by which LD_PRELOAD names them as lib/thrum/$PLATFORM/NAME. The
# loader of the program's libc puts the platform in. So a child of another kind of program takes no harm: musl's loader
# does not know $PLATFORM, finds no such file and says nothing; that of 32-bit programs finds an empty library.
# cli/preload.cpp uses the path where it leads to the library, else the library's own.
set(preload_tree "${PROJECT_BINARY_DIR}/lib/thrum")
set(preload_platforms "${THRUM_ARCH}")
set(preload_libraries libthrum-cache.so libthrum-stat.so)
if(TARGET abt)
    list(APPEND preload_libraries libabt.so.1)
endif()
if(THRUM_ARCH STREQUAL "x86_64")
    list(APPEND preload_platforms haswell xeon_phi) # what glibc calls some processors
endif()
foreach(platform IN LISTS preload_platforms)
    file(MAKE_DIRECTORY "${preload_tree}/${platform}")
    foreach(name IN LISTS preload_libraries)
        file(CREATE_LINK "../../${name}" "${preload_tree}/${platform}/${name}" SYMBOLIC)
    endforeach()
endforeach()

set(preload_empty "${PROJECT_BINARY_DIR}/CMakeFiles/thrum-empty.so")
if(THRUM_ARCH STREQUAL "x86_64" AND NOT EXISTS "${preload_empty}")
    file(WRITE "${PROJECT_BINARY_DIR}/CMakeFiles/thrum-empty.c" "typedef int nothing;\n")
    execute_process(
        COMMAND "${CMAKE_C_COMPILER}" -m32 -shared -nostdlib -fno-sanitize=all -s -Wl,-z,noexecstack,--build-id=none
                -o "${preload_empty}" "${PROJECT_BINARY_DIR}/CMakeFiles/thrum-empty.c"
        RESULT_VARIABLE preload_failed OUTPUT_QUIET ERROR_QUIET)
    if(preload_failed)
        message(STATUS "The compiler makes no 32-bit code: 32-bit children of `thrum run` will complain about LD_PRELOAD")
    endif()
endif()
if(EXISTS "${preload_empty}")
    file(MAKE_DIRECTORY "${preload_tree}/i686")
    foreach(name IN LISTS preload_libraries)
        file(COPY_FILE "${preload_empty}" "${preload_tree}/i686/${name}" ONLY_IF_DIFFERENT)
    endforeach()
    foreach(platform i386 i486 i586)
        file(CREATE_LINK i686 "${preload_tree}/${platform}" SYMBOLIC)
    endforeach()
endif()
install(DIRECTORY "${preload_tree}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
