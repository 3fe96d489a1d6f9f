# dlock_library(NAME sources...): one static library per folder, with src/ as the include root.
function(dlock_library name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
endfunction()
