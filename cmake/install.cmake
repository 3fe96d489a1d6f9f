# What is installed, and where.

install(TARGETS dlock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(section 1 5 7)
  file(GLOB pages CONFIGURE_DEPENDS man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
install(FILES completions/dlock.bash RENAME dlock
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# The prefix can still be changed by "cmake --install", hence CODE for what depends on it.
#
# The zsh of Debian looks in vendor-completions below /usr, and in site-functions below /usr/local; that of
# others in site-functions.
set(DLOCK_ZSH_DIR "" CACHE STRING
  "Directory for the completion of zsh, below the prefix; empty: where the zsh of Debian looks")
# fish looks below /usr and in ~/.local/share, and in /usr/local only if XDG_DATA_DIRS names it.  Its
# folder for what the administrator installs is in /etc.
install(CODE "set(dlock_completions \"${PROJECT_SOURCE_DIR}/completions\")
  set(dlock_zsh_dir \"${DLOCK_ZSH_DIR}\")")
install(CODE [[
  if(NOT dlock_zsh_dir AND CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(dlock_zsh_dir share/zsh/vendor-completions)
  elseif(NOT dlock_zsh_dir)
    set(dlock_zsh_dir share/zsh/site-functions)
  endif()
  if(NOT IS_ABSOLUTE "${dlock_zsh_dir}")
    set(dlock_zsh_dir "${CMAKE_INSTALL_PREFIX}/${dlock_zsh_dir}")
  endif()
  file(INSTALL DESTINATION "${dlock_zsh_dir}" TYPE FILE FILES "${dlock_completions}/_dlock")

  set(dlock_fish_dir ${CMAKE_INSTALL_PREFIX}/share/fish/vendor_completions.d)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr/local")
    set(dlock_fish_dir /etc/fish/completions)
  endif()
  file(INSTALL DESTINATION "${dlock_fish_dir}" TYPE FILE FILES "${dlock_completions}/dlock.fish")
]])

# systemd looks below /usr and /usr/local.
install(FILES cmake/dlock.tmpfiles RENAME dlock.conf DESTINATION lib/tmpfiles.d)
