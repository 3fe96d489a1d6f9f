# Build type, warnings, hardening, sanitizers and how the binary is linked.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

# Warnings.  Errors in the presets that developers use (CMAKE_COMPILE_WARNING_AS_ERROR), never for
# somebody who only installs: the next compiler has new ones.
add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict)  # gcc 12 sees overlaps in "a" + string: gcc.gnu.org/PR105651
endif()

# No file that is built names the directory it was built in, so that a compiler cache serves every checkout.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Hardening.  An index out of range ends the process rather than reading what is there: the job is
# then ended as after any death of dlock.
include(CheckPIESupported)
check_pie_supported()  # without this CMake compiles for PIE, but leaves the linking to the default
add_compile_options(-fstack-protector-strong)
# A large frame cannot step over the guard page of a stack.  clang has it for some processors only.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-Werror -fstack-clash-protection" DLOCK_HAS_STACK_CLASH_PROTECTION)
if(DLOCK_HAS_STACK_CLASH_PROTECTION)
  add_compile_options(-fstack-clash-protection)
endif()
# A quarter of the libraries' code is never called; what is not there need not be loaded.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,--as-needed)
if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  # 3 warns with gcc 11 and older.  Distributions define it themselves, hence the -U.
  set(level 2)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(level 3)
  endif()
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
endif()

set(DLOCK_SANITIZE "" CACHE STRING "address,undefined or thread")
if(DLOCK_SANITIZE)
  add_compile_options(-fsanitize=${DLOCK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DLOCK_SANITIZE})
else()
  # Loading libstdc++ costs a short job more than everything that dlock does itself.
  set(DLOCK_STATIC_RUNTIME -static-libstdc++ -static-libgcc)
endif()
