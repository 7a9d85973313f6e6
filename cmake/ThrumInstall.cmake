# SPDX-License-Identifier: Apache-2.0
#
# cmake --install, apart from the targets: headers, man pages, pkg-config and CMake package files.
# Everything in the package files is relative to where they stand, so that DESTDIR, --prefix and
# moving the prefix afterwards all work.
include(CMakePackageConfigHelpers)

# What `make install` builds: tests, benchmarks and examples take minutes, and are not installed.
set(installed_targets thrum thrum-cache thrum-stat thrum-ult abt)
foreach(target IN LISTS installed_targets)
    if(NOT TARGET ${target})
        list(REMOVE_ITEM installed_targets ${target})
    endif()
endforeach()
add_custom_target(thrum-installed DEPENDS ${installed_targets})

if(EXISTS "${PROJECT_SOURCE_DIR}/include/thrum")
    install(DIRECTORY include/thrum DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
            FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()

foreach(section 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS "docs/man/*.${section}")
    if(pages)
        install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
    endif()
endforeach()

# A page of section 3 is about several functions: a link for each other one that stands in its NAME section.
file(GLOB pages CONFIGURE_DEPENDS docs/man/*.3)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages})
foreach(page IN LISTS pages)
    get_filename_component(page_name "${page}" NAME_WE)
    file(READ "${page}" text)
    if(NOT text MATCHES "\n\\.SH NAME\n([a-z_, \n]*)\\\\- ")
        message(FATAL_ERROR "${page}: no NAME section of the form thrum_x, thrum_y \\- what they do")
    endif()
    string(REGEX MATCHALL "thrum_[a-z_]+" names "${CMAKE_MATCH_1}")
    list(REMOVE_ITEM names "${page_name}")
    foreach(name IN LISTS names)
        file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/man/${name}.3" CONTENT ".so man3/${page_name}.3\n")
        install(FILES "${PROJECT_BINARY_DIR}/man/${name}.3" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
    endforeach()
endforeach()

# pkg-config: thrum is libthrum.so; thrum-cache has --cflags for the headers, --variable=preload for the library's path.
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH pc_to_prefix "/prefix/${pc_dir}" "/prefix")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
foreach(package thrum thrum-cache)
    configure_file(cmake/${package}.pc.in "${PROJECT_BINARY_DIR}/${package}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${package}.pc" DESTINATION "${pc_dir}")
endforeach()

# CMake: find_package(thrum) gives thrum::thrum, thrum::headers, thrum::cache and thrum::command.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/thrum")
configure_package_config_file(cmake/thrumConfig.cmake.in "${PROJECT_BINARY_DIR}/thrumConfig.cmake"
    INSTALL_DESTINATION "${package_dir}"
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/thrumConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/thrumConfig.cmake" "${PROJECT_BINARY_DIR}/thrumConfigVersion.cmake"
        DESTINATION "${package_dir}")
