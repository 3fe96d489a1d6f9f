# cpack runs this after it has installed the files of a package: compresses the pages, adds the notices and the changes.
set(share ${CPACK_TEMPORARY_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
set(doc ${share}/doc/dlock)
configure_file(${CPACK_DLOCK_SOURCE}/cmake/package/copyright ${doc}/copyright COPYONLY)
configure_file(${CPACK_DLOCK_SOURCE}/CHANGELOG.md ${doc}/changelog COPYONLY)

if(CPACK_GENERATOR STREQUAL "DEB")
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${doc}/changelog.Debian
    "dlock (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Packaged by cpack. The changes of dlock are in changelog.gz.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  # zsh of Debian and Ubuntu looks for the completions of packages there.
  if(EXISTS ${share}/zsh/site-functions)
    file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)
  endif()
else()
  configure_file(/usr/share/common-licenses/Apache-2.0 ${doc}/Apache-2.0 COPYONLY)
endif()

file(GLOB texts ${share}/man/man?/* ${doc}/changelog*)
execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND chmod -R u=rwX,go=rX ${CPACK_TEMPORARY_DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)
