# Writes OUTPUT: the version of dlock, 0.1.0, or 0.1.0+N.gHASH in a git checkout of N commits; only if that has changed.
#   cmake -D VERSION=0.1.0 -D SOURCE=DIR -D OUTPUT=FILE -P version.cmake
set(TEXT ${VERSION})
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -c safe.directory=${SOURCE} -C ${SOURCE} rev-list --count HEAD
    OUTPUT_VARIABLE COUNT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} -c safe.directory=${SOURCE} -C ${SOURCE} rev-parse --short=8 HEAD
    OUTPUT_VARIABLE HASH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(COUNT AND HASH)
    set(TEXT "${VERSION}+${COUNT}.g${HASH}")
  endif()
endif()
set(BEFORE "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} BEFORE)
endif()
set(NOW "inline constexpr const char* kBuild = \"${TEXT}\";\n")
if(NOT BEFORE STREQUAL NOW)
  file(WRITE ${OUTPUT} "${NOW}")
endif()
