# Says at the end of configure which backends are built in.
#
# A folder src/backends/X makes the target dlock_X.  Where it cannot, because a client library is
# missing, it says so in the global property dlock_X_left_out, e.g.
#   set_property(GLOBAL PROPERTY dlock_redis_left_out "hiredis not found; install libhiredis-dev")
# and in dlock_X_note what else there is to say of one that is built in, e.g. "with TLS".

message(STATUS "")
message(STATUS "dlock ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} "
  "${CMAKE_CXX_COMPILER_VERSION}; backends:")
foreach(row
    "file|file"
    "redis|redis, redlock"
    "zookeeper|zookeeper"
    "mysql|mysql, mysql-row, mysql-version"
    "postgres|postgres, postgres-row")
  string(REPLACE "|" ";" row "${row}")
  list(GET row 0 folder)
  list(GET row 1 names)
  get_property(left_out GLOBAL PROPERTY dlock_${folder}_left_out)
  if(TARGET dlock_${folder})
    get_property(note GLOBAL PROPERTY dlock_${folder}_note)
    set(state "built in")
    if(note)
      string(APPEND state ", ${note}")
    endif()
  elseif(left_out)
    set(state "left out: ${left_out}")
  else()
    set(state "not part of this version")
  endif()
  message(STATUS "  ${names}: ${state}")
endforeach()
message(STATUS "")
