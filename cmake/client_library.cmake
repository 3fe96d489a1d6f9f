# dlock_find_client_library(VARIABLE NAME FUNCTION): the C library NAME, which has FUNCTION, as find_library()
# finds it; as an archive, if there is one that can be linked without further libraries.  To load a shared
# library takes time from each run of dlock, also from one that needs no server.
include(CheckCXXSourceCompiles)

function(dlock_find_client_library variable name function)
  if(NOT DEFINED ${variable})
    find_library(${variable}_ARCHIVE lib${name}.a)
    mark_as_advanced(${variable}_ARCHIVE)
    if(${variable}_ARCHIVE)
      set(CMAKE_REQUIRED_QUIET ON)
      set(CMAKE_REQUIRED_LIBRARIES ${${variable}_ARCHIVE})
      set(CMAKE_REQUIRED_LINK_OPTIONS ${CMAKE_CXX_LINK_OPTIONS_PIE})
      check_cxx_source_compiles("extern \"C\" void ${function}(); int main() { ${function}(); }"
        ${variable}_ARCHIVE_LINKS)
      if(${variable}_ARCHIVE_LINKS)
        set(${variable} ${${variable}_ARCHIVE} CACHE FILEPATH "The client library ${name}")
      endif()
    endif()
  endif()
  find_library(${variable} ${name})
endfunction()
