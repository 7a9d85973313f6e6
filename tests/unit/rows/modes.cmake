# SPDX-License-Identifier: Apache-2.0
#
# The programs of some rows once more, in the modes that do not reuse threads (src/kthread/mode.h): there they behave as
# without thrum. row.<name>.<mode>; row.mode.* is about the modes themselves, and the only one of them in ./test, since
# no program comes into these modes without asking for them. Included by CMakeLists.txt beside this file.
if(NOT TARGET thrum-cache OR THRUM_ROWS_WITHOUT_CACHE)
  return()
endif()

add_executable(row-mode mode.c)
thrum_row_settings(row-mode)
set_target_properties(row-mode PROPERTIES OUTPUT_NAME mode)
set_property(GLOBAL PROPERTY THRUM_ROW_PROGRAMS_mode "$<TARGET_FILE:row-mode>")

foreach(row IN ITEMS mode end static-tls libc-tls tls-dtors keys sigmask sigpending cancel fpenv inherit lineage attributes
    join stack last-thread eagain fork c11 exit)
  get_property(programs GLOBAL PROPERTY THRUM_ROW_PROGRAMS_${row})
  foreach(mode IN ITEMS standby standby-helping stacks)
    thrum_row_test(${row} ${mode} $<TARGET_FILE:thrum-cache> ${programs})
    if(NOT row STREQUAL "mode")
      set_tests_properties(row.${row}.${mode} PROPERTIES LABELS "rows;heavy")
    endif()
  endforeach()
endforeach()
