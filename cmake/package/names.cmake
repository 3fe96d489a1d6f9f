# cpack reads this before it makes a package: what the name and the fields of the package depend on, beside the version
# of dlock, is known only when the program is built.  Needs CMake 3.22.

# Two builds of a commit, or of the same files without git, give the same packages.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -c safe.directory=${CPACK_DLOCK_SOURCE} -C ${CPACK_DLOCK_SOURCE} log -1 --format=%ct
    OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT time)
    file(TIMESTAMP ${CPACK_DLOCK_SOURCE}/CHANGELOG.md time %s UTC)
  endif()
  set(ENV{SOURCE_DATE_EPOCH} ${time})
endif()

if(CPACK_GENERATOR STREQUAL "TGZ")
  file(STRINGS ${CPACK_DLOCK_PROGRAM} versions REGEX "^GLIBC_[0-9.]+$")
  list(SORT versions COMPARE NATURAL)
  list(POP_BACK versions newest)
  string(REPLACE "GLIBC_" "glibc" newest ${newest})
  execute_process(COMMAND uname -m OUTPUT_VARIABLE processor OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(CPACK_PACKAGE_FILE_NAME dlock-${CPACK_PACKAGE_VERSION}-linux-${processor}-${newest})
endif()

if(CPACK_GENERATOR STREQUAL "DEB")
  cmake_host_system_information(RESULT system QUERY DISTRIB_ID)
  cmake_host_system_information(RESULT release QUERY DISTRIB_VERSION_ID)
  string(REPLACE "debian" "deb" system ${system})
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1~${system}${release})

  # The program contains the names of the libraries that it loads when it needs them.
  file(STRINGS ${CPACK_DLOCK_PROGRAM} libraries REGEX "^lib(mariadb|mysqlclient|pq|ssl)[.]so[.][0-9.]+$")
  set(packages "")
  foreach(library IN LISTS libraries)
    execute_process(COMMAND dpkg-query -S */${library} OUTPUT_VARIABLE owner COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE ":.*" "" owner ${owner})
    list(APPEND packages ${owner})
  endforeach()
  list(JOIN packages ", " CPACK_DEBIAN_PACKAGE_RECOMMENDS)
endif()
