// The kernel shows as command line the memory in which it placed argv at the start; environ follows
// at once.  If the last byte of argv is no longer 0, it shows what is there up to the first 0, in
// environ, too (proc_pid_cmdline(5)).  So argv is overwritten, and where that is too short for the
// title, the environment is copied elsewhere and its begin is overwritten, too, as PostgreSQL and
// setproctitle(3) do.

#include "util/process_title.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

extern char** environ;

namespace dlock::util {
namespace {

char** arguments = nullptr;

// The end of the strings if they follow `begin` one after the other, else where they cease to.
char* end_of(char** strings, char* begin) {
  for (; *strings == begin; ++strings) begin += std::strlen(begin) + 1;
  return begin;
}

void move_environment() {
  static std::vector<std::string> strings;
  static std::vector<char*> pointers;
  for (char** variable = environ; *variable != nullptr; ++variable) strings.emplace_back(*variable);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  environ = pointers.data();
}

}  // namespace

void note_arguments(char** argv) { arguments = argv; }

void set_process_title(const std::string& title) {
  prctl(PR_SET_NAME, title.c_str());
  if (arguments == nullptr || *arguments == nullptr) return;
  char* const begin = *arguments;
  char* const arguments_end = end_of(arguments, begin);
  const auto room = static_cast<std::size_t>(end_of(environ, arguments_end) - begin);
  const std::size_t length = std::min(title.size(), room - 1);
  if (begin + length >= arguments_end) move_environment();
  // First all becomes 0 that the kernel might show while the title is not complete.
  const auto shown = static_cast<std::size_t>(arguments_end - begin);
  explicit_bzero(begin, std::max(shown, length + 1));
  std::copy_n(title.data(), length, begin);
}

}  // namespace dlock::util
