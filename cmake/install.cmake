# What is installed, and where.  The man page and the completions are committed; a test compares them
# with what this dlock would write.

install(TARGETS dlock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES man/dlock.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES completions/dlock.bash RENAME dlock
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES completions/_dlock
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES completions/dlock.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
