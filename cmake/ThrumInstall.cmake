# SPDX-License-Identifier: Apache-2.0
#
# cmake --install, apart from the targets: headers, man pages, pkg-config and CMake package files.
# Everything in the package files is relative to where they stand, so that DESTDIR, --prefix and
# moving the prefix afterwards all work.
include(CMakePackageConfigHelpers)

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

# pkg-config: --cflags for the headers, --variable=preload for the library's path.
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH pc_to_prefix "/prefix/${pc_dir}" "/prefix")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(cmake/thrum-cache.pc.in "${PROJECT_BINARY_DIR}/thrum-cache.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/thrum-cache.pc" DESTINATION "${pc_dir}")

# CMake: find_package(thrum) gives thrum::headers and thrum::cache.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/thrum")
configure_package_config_file(cmake/thrumConfig.cmake.in "${PROJECT_BINARY_DIR}/thrumConfig.cmake"
    INSTALL_DESTINATION "${package_dir}"
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/thrumConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/thrumConfig.cmake" "${PROJECT_BINARY_DIR}/thrumConfigVersion.cmake"
        DESTINATION "${package_dir}")
