# What is installed, and where.  The man page and the completions are committed; a test compares them
# with what this dlock would write.

install(TARGETS dlock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES man/dlock.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES completions/dlock.bash RENAME dlock
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES completions/_dlock
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
# fish looks below /usr and in ~/.local/share, and in /usr/local only if XDG_DATA_DIRS names it.  Its
# folder for what the administrator installs is in /etc.  The prefix can still be changed by
# "cmake --install", hence CODE.
install(CODE "set(dlock_fish \"${PROJECT_SOURCE_DIR}/completions/dlock.fish\")")
install(CODE [[
  set(dlock_fish_dir ${CMAKE_INSTALL_PREFIX}/share/fish/vendor_completions.d)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr/local")
    set(dlock_fish_dir /etc/fish/completions)
  endif()
  file(INSTALL DESTINATION "${dlock_fish_dir}" TYPE FILE FILES "${dlock_fish}")
]])

# systemd looks below /usr and /usr/local.
install(FILES cmake/dlock.tmpfiles RENAME dlock.conf DESTINATION lib/tmpfiles.d)
