# Packages for those who do not build dlock: "cmake --build DIR --target package" writes a .deb for the release of Debian
# or Ubuntu that it runs on, and a tarball for every Linux whose glibc is not older than the name says.

set(CPACK_PACKAGE_CONTACT "dlock maintainers <dlock@example.org>" CACHE STRING
  "Maintainer of the package: NAME <MAIL>")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run commands under a distributed lock")
set(CPACK_PACKAGE_DESCRIPTION
  "dlock runs a command under a lock, so that it runs once at a time: on one
machine with lock files, on several with Redis, ZooKeeper, MySQL, MariaDB or
PostgreSQL.
If the lock is lost, or dlock dies, the command is ended.")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/package/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_DLOCK_PROGRAM ${PROJECT_BINARY_DIR}/src/dlock)
set(CPACK_DLOCK_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package/names.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package/files.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package/tarball.cmake)
include(CPack)
