# dlock_gtest_suites(TARGET PREFIX [SUFFIX TEXT] [SOAK REGEX] [HEAVY REGEX] [PROPERTIES NAME VALUE...])
# One ctest test for each suite of a GoogleTest program, PREFIX.SUITE, and for each parameter of a suite that
# has parameters, PREFIX.SUITE/PARAMETER.  Tests whose name matches the REGEX of SOAK have the label "soak", and
# those that match the REGEX of HEAVY count as three of the tests that run at once.  TEXT follows each name: with
# it, a program can be registered more than once.  gtest_discover_tests() would make a ctest test of each test;
# starting the program and a server for each costs more than most tests.
#
# The second part of this file runs as a script after each build of the program, and asks it for its tests.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(DLOCK_GTEST_SUITES ${CMAKE_CURRENT_LIST_FILE})

  function(dlock_gtest_suites target prefix)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "SUFFIX;SOAK;HEAVY" "PROPERTIES")
    set(tests ${CMAKE_CURRENT_BINARY_DIR}/${target}${arg_SUFFIX}.suites.cmake)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      BYPRODUCTS ${tests}
      COMMAND ${CMAKE_COMMAND} -D "PROGRAM=$<TARGET_FILE:${target}>" -D "PREFIX=${prefix}"
        -D "SUFFIX=${arg_SUFFIX}" -D "SOAK=${arg_SOAK}" -D "HEAVY=${arg_HEAVY}"
        -D "PROPERTIES=${arg_PROPERTIES}" -D "TESTS=${tests}" -P ${DLOCK_GTEST_SUITES})
    set(include ${CMAKE_CURRENT_BINARY_DIR}/${target}${arg_SUFFIX}.include.cmake)
    file(WRITE ${include} "if(EXISTS \"${tests}\")\n  include(\"${tests}\")\nelse()\n"
      "  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
  endfunction()
  return()
endif()

execute_process(COMMAND ${PROGRAM} --gtest_list_tests
  OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[][;]" "_" lines "${lines}")
string(REPLACE "\n" ";" lines "${lines}")

# A line is "Suite." or "Instance/Suite.", or "  Test" or "  Test/Parameter  # ...".
set(filters)
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.")
    set(suite ${CMAKE_MATCH_1})
  elseif(line MATCHES "^  [^ /]+/([^ ]+)")
    list(APPEND filters "${suite}.*/${CMAKE_MATCH_1}")
  elseif(line MATCHES "^  [^ ]")
    list(APPEND filters "${suite}.*")
  endif()
endforeach()
list(REMOVE_DUPLICATES filters)

set(text "")
foreach(filter IN LISTS filters)
  string(REGEX REPLACE "^[^.]*/" "" name "${filter}")
  string(REPLACE ".*" "" name "${PREFIX}.${name}${SUFFIX}")
  string(APPEND text "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES SKIP_RETURN_CODE 125 ${PROPERTIES})\n")
  if(SOAK AND name MATCHES "${SOAK}")
    string(APPEND text "set_tests_properties([=[${name}]=] PROPERTIES LABELS soak)\n")
  endif()
  if(HEAVY AND name MATCHES "${HEAVY}")
    string(APPEND text "set_tests_properties([=[${name}]=] PROPERTIES PROCESSORS 3)\n")
  endif()
endforeach()
file(WRITE ${TESTS} "${text}")
