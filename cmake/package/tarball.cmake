# cpack runs this after it has written a package: writes the tarball again.  In that of cpack, all files belong to the
# user number that ran cpack.  If root unpacked it, the user with this number could replace the program.
if(CPACK_GENERATOR STREQUAL "TGZ")
  get_filename_component(directory ${CPACK_TEMPORARY_DIRECTORY} DIRECTORY)
  execute_process(
    COMMAND tar -C ${directory} --sort=name --mtime=@$ENV{SOURCE_DATE_EPOCH} --owner=root:0 --group=root:0 --numeric-owner
      -c ${CPACK_PACKAGE_FILE_NAME}
    COMMAND gzip -9n
    OUTPUT_FILE ${CPACK_PACKAGE_FILES} COMMAND_ERROR_IS_FATAL ANY)
endif()
