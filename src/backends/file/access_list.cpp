// With an access list, the group bits of the mode are its mask: what any of those whom it names may
// have at most, and the group itself, too.
#include "backends/file/access_list.hpp"

#include <endian.h>
#include <linux/limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

namespace dlock::file {
namespace {

// No bytes: it has none, or its file system knows none.
std::optional<std::string> list_of(const std::string& path) {
  std::string list(XATTR_SIZE_MAX, '\0');
  const ssize_t size =
      ::lgetxattr(path.c_str(), "system.posix_acl_access", list.data(), list.size());
  if (size < 0 && errno != ENODATA && errno != ENOTSUP) return std::nullopt;
  list.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return list;
}

}  // namespace

std::optional<std::vector<Writer>> writers_by_group_bits(const std::string& path,
                                                         const struct stat& st) {
  std::vector<Writer> writers;
  if ((st.st_mode & S_IWGRP) == 0) return writers;
  const auto list = list_of(path);
  if (!list) return std::nullopt;
  if (list->empty()) {
    writers.push_back({.is_group = true, .id = st.st_gid});
    return writers;
  }
  // All is little-endian there.
  posix_acl_xattr_header header{};
  if (list->size() < sizeof(header)) return std::nullopt;
  for (std::size_t at = sizeof(header); at < list->size(); at += sizeof(posix_acl_xattr_entry)) {
    posix_acl_xattr_entry entry{};
    if (list->size() - at < sizeof(entry)) return std::nullopt;
    std::memcpy(&entry, list->data() + at, sizeof(entry));
    if ((le16toh(entry.e_perm) & ACL_WRITE) == 0) continue;
    switch (le16toh(entry.e_tag)) {
      case ACL_USER:
        writers.push_back({.id = le32toh(entry.e_id)});
        break;
      case ACL_GROUP_OBJ:
        writers.push_back({.is_group = true, .id = st.st_gid});
        break;
      case ACL_GROUP:
        writers.push_back({.is_group = true, .id = le32toh(entry.e_id)});
        break;
      default:  // the owner, all others, the mask
        break;
    }
  }
  return writers;
}

}  // namespace dlock::file
