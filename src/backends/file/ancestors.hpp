// The directories above a lock directory, and whether a user could replace it by them.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "core/result.hpp"
#include "util/fd.hpp"

namespace dlock::file {

/// A directory, or a symbolic link, that a path leads through.
struct Ancestor {
  std::string path;
  struct stat st {};
  bool in_proc = false;  // a link that may lead elsewhere than its text says
};

/// Opens the directory `path`, which is absolute, and notes each directory and link on the way, "/"
/// first.  The last part of the path may not be a link.  No descriptor, with errno set, on failure.
Fd open_noting_ancestors(const std::string& path, std::vector<Ancestor>& ancestors);

/// Errc::denied, with the ancestor and what to do, if another user could put another directory in
/// the place of the lock directory `path`, of status `dir`.
Result<void> check_ancestors(const std::string& path, const struct stat& dir,
                             const std::vector<Ancestor>& ancestors);

/// Whether a list that setfacl(1) has made (acl(5)) decides who may use the directory `path`, or
/// also what is created in it.  True if that cannot be told.
enum class ListOf { directory, directory_and_content };
bool has_access_list(const std::string& path, ListOf what);

}  // namespace dlock::file
