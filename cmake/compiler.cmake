# Warnings, hardening, sanitizers and how the binary is linked.

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wno-missing-field-initializers)

# Hardening.  Debian's compilers make PIE by default; -fPIE is said for those that do not.
add_compile_options(-fstack-protector-strong)
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,--as-needed)
if(CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()

set(DLOCK_SANITIZE "" CACHE STRING "address,undefined or thread")
if(DLOCK_SANITIZE)
  add_compile_options(-fsanitize=${DLOCK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DLOCK_SANITIZE})
else()
  # Loading libstdc++ costs a short job more than everything that dlock does itself.
  set(DLOCK_STATIC_RUNTIME -static-libstdc++ -static-libgcc)
endif()
