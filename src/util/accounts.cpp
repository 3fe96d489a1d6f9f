#include "util/accounts.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlock::util {
namespace {

constexpr std::size_t kEntry = 65'536;  // room for the longest that is likely

struct User {
  std::string name;
  gid_t group;
};

std::optional<User> user_of(uid_t number) {
  std::vector<char> buffer(kEntry);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(number, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return std::nullopt;
  return User{found->pw_name, found->pw_gid};
}

// Not getpwent(3), whose place in the list all threads share.
bool is_first_group_of_another(gid_t group, uid_t user) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/etc/passwd", "re"), std::fclose);
  std::vector<char> buffer(kEntry);
  passwd entry{};
  passwd* found = nullptr;
  while (file && ::fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
    if (found->pw_gid == group && found->pw_uid != user) return true;
  }
  return false;
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// user_namespaces(7): the first one has all numbers.
bool has_all_users() {
  unsigned long inside = 0;
  unsigned long outside = 0;
  unsigned long count = 0;
  const std::string map = text_of("/proc/self/uid_map");
  const int read = std::sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count);
  return read != 3 || (inside == 0 && outside == 0 && count >= 0xFFFFFFFF);
}

bool is_nobody_here(uid_t user) {
  const std::string number = text_of("/proc/sys/kernel/overflowuid");
  return number == std::to_string(user) + '\n' && !has_all_users();
}

}  // namespace

bool may_be_root(uid_t user) {
  struct stat top {};
  return user == 0 || (::stat("/", &top) == 0 && user == top.st_uid) || is_nobody_here(user);
}

bool is_member(uid_t user, gid_t group) {
  const auto entry = user_of(user);
  if (!entry) return false;
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(entry->name.c_str(), entry->group, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(entry->name.c_str(), entry->group, groups.data(), &count) < 0) return false;
  }
  groups.resize(static_cast<std::size_t>(count));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

bool is_private_group(gid_t group, uid_t user) {
  if (group == 0) return false;
  std::vector<char> buffer(kEntry);
  struct group entry {};
  struct group* found = nullptr;
  ::getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found);
  const auto owner = user_of(user);
  // A container may know neither: both are the number that it was started with.
  if (!owner) return found == nullptr && group == user;
  if (found == nullptr || owner->group != group || owner->name != found->gr_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (owner->name != *member) return false;
  }
  return !is_first_group_of_another(group, user);
}

}  // namespace dlock::util
