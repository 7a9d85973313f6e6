# SPDX-License-Identifier: Apache-2.0
#
# Row tests of the life cycle and of what a kernel thread carries. Included by CMakeLists.txt beside this file.

thrum_row(inherit SOURCES inherit.c inherit_placement.c)
thrum_row(lineage SOURCES
  lineage_scheduling.c lineage_rights.c lineage_kernel.c lineage_unshare.c lineage_other.c lineage_vfork.c
  lineage_keys.c lineage_perf.c lineage_newer.c)
thrum_row(kernel-ties SOURCES kernel-ties.c kernel-ties_own.c kernel-ties_children.c kernel-ties_uring.c
  kernel-ties_unknown.c)
thrum_row(attributes SOURCES attributes.c)
thrum_row(join SOURCES join.c)
thrum_row(stale SOURCES stale.c stale_tid.c stale_compat.c stale_core.c)
thrum_row(last-thread SOURCES last-thread.c)
thrum_row(eagain SOURCES eagain.c)
# A dependency of its program, so its constructor runs before the cache's.
thrum_row_module(row-fork-handler SOURCES fork-handler-module.c)
thrum_row(fork SOURCES fork.c fork_others.c LINK row-fork-handler)
thrum_row(c11 SOURCES c11.c)
thrum_row(exit SOURCES exit.c exit_verbose.c)
thrum_row(rest SOURCES rest.c)
thrum_row(sandbox SOURCES sandbox.c sandbox_outside.c)
thrum_row(kernel-pointers SOURCES kernel-pointers.c)
thrum_row(unseen SOURCES unseen.c)
thrum_row(rights SOURCES rights.c)
thrum_row(task-stat SOURCES task-stat.c)
thrum_row_module(row-deepbind-module SOURCES deepbind-module.c)
thrum_row(deepbind SOURCES deepbind.c MODULES row-deepbind-module)
if(TARGET thrum-cache AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME row.versions COMMAND "${THRUM_ROWS_DIR}/versions.sh" readelf $<TARGET_FILE:thrum-cache>)
  set_tests_properties(row.versions PROPERTIES LABELS rows TIMEOUT 60 SKIP_RETURN_CODE 77)
endif()
add_test(NAME row.calls COMMAND "${THRUM_ROWS_DIR}/calls.sh" "${CMAKE_C_COMPILER}" "${PROJECT_SOURCE_DIR}/cache/calls.h")
set_tests_properties(row.calls PROPERTIES LABELS rows TIMEOUT 60 SKIP_RETURN_CODE 77)
thrum_row(tasks SOURCES tasks.c)

# ASan's runtime, linked in statically: with the shared one, the dynamic loader's order would be the subject. Not under
# emulation, where it does not run.
set(sanitizer_programs sanitizers.c sanitizers_no-pie.c)
if(NOT CMAKE_CROSSCOMPILING)
  list(APPEND sanitizer_programs sanitizers_asan.c)
endif()
thrum_row(sanitizers SOURCES ${sanitizer_programs})
target_link_options(row-sanitizers PRIVATE -rdynamic)
set_target_properties(row-sanitizers_no-pie PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(row-sanitizers_no-pie PRIVATE -fno-pie)
target_link_options(row-sanitizers_no-pie PRIVATE -no-pie)
if(TARGET row-sanitizers_asan)
  target_compile_options(row-sanitizers_asan PRIVATE -fsanitize=address)
  target_link_options(row-sanitizers_asan PRIVATE
    -fsanitize=address $<$<C_COMPILER_ID:GNU>:-static-libasan> $<$<C_COMPILER_ID:Clang>:-static-libsan>)
endif()

thrum_row(glibc SOURCES glibc.c CHECKED glibc_checked.c)
target_compile_definitions(row-glibc_checked PRIVATE THRUM_TEST_CHECKED=1)

# A test of the command. A cross build has no command to run.
if(TARGET thrum AND NOT CMAKE_CROSSCOMPILING)
  foreach(kind IN ITEMS ordinary static musl)
    add_executable(row-preload-${kind} preload-program.c)
    set_target_properties(row-preload-${kind} PROPERTIES
      OUTPUT_NAME preload-${kind} RUNTIME_OUTPUT_DIRECTORY "${THRUM_ROWS_BIN}")
    target_link_options(row-preload-${kind} PRIVATE -fno-sanitize=all)
  endforeach()
  target_link_options(row-preload-static PRIVATE -static)
  target_link_options(row-preload-musl PRIVATE LINKER:--dynamic-linker=/lib/ld-musl-${CMAKE_SYSTEM_PROCESSOR}.so.1)
  set(preload_modes thrum)
  if(THRUM_DEBUG)
    list(APPEND preload_modes skipped)
  endif()
  foreach(mode IN LISTS preload_modes)
    add_test(NAME row.preload.${mode}
      COMMAND "${THRUM_ROWS_DIR}/preload.sh" ${mode} $<TARGET_FILE:thrum> $<TARGET_FILE:row-preload-ordinary>
              $<TARGET_FILE:row-preload-static> $<TARGET_FILE:row-preload-musl>)
    set_tests_properties(row.preload.${mode} PROPERTIES LABELS rows TIMEOUT 60)
  endforeach()
endif()
