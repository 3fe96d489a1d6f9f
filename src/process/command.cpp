#include "process/command.hpp"

#include <fcntl.h>
#include <sys/prctl.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "util/fd.hpp"
#include "util/text.hpp"

extern char** environ;

namespace dlock {
namespace {

// All that needs memory is allocated before the fork.
struct Prepared {
  std::vector<std::string> paths;
  std::vector<std::string> variables;  // those that dlock sets
  std::vector<char*> argv;  // /bin/sh, then the arguments; a script's path goes to [kScript]
  std::vector<char*> envp;
};

char shell[] = "/bin/sh";
constexpr std::size_t kScript = 1;

std::vector<std::string> candidates(const std::string& command) {
  if (command.find('/') != std::string::npos || command.empty()) return {command};
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
  std::vector<std::string> out;
  for (;;) {
    const auto colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    out.push_back(directory.empty() ? command : std::string(directory) + '/' + command);
    if (colon == std::string_view::npos) return out;
    rest.remove_prefix(colon + 1);
  }
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& string : strings) out.push_back(string.data());
  out.push_back(nullptr);
  return out;
}

bool sets(std::string_view variable, const CommandSpec& spec) {
  for (const auto& [name, value] : spec.environment) {
    if (variable.substr(0, variable.find('=')) == name) return true;
  }
  return false;
}

std::vector<std::string> variables_of(const CommandSpec& spec) {
  std::vector<std::string> out;
  for (const auto& [name, value] : spec.environment) {
    if (!value.empty()) out.push_back(name + '=' + value);
  }
  return out;
}

// Our own environment with `set` in it, which ends with the null pointer.
std::vector<char*> environment_with(std::vector<char*> set, const CommandSpec& spec) {
  std::vector<char*> out;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!sets(*variable, spec)) out.push_back(*variable);
  }
  out.insert(out.end(), set.begin(), set.end());
  return out;
}

// As execvp(3): a later directory of PATH may have a file that can be run.
bool may_be_elsewhere(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE ||
         error == ENODEV || error == ETIMEDOUT;
}

// Runs in the child, in the parent's memory: only system calls are allowed.  Returns the errno.
int exec_first(Prepared& prepared) {
  int error = ENOENT;
  for (std::string& path : prepared.paths) {
    execve(path.c_str(), prepared.argv.data() + kScript, prepared.envp.data());
    if (errno == ENOEXEC) {  // as execvp(3): a script without #!
      prepared.argv[kScript] = path.data();
      execve(shell, prepared.argv.data(), prepared.envp.data());
      errno = ENOEXEC;
    }
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (!may_be_elsewhere(errno)) break;
  }
  return error;
}

// The errno of the exec, or 0: the exec, which start() has waited for, has closed the other end.
int read_result(int fd) {
  int error = 0;
  ssize_t got;
  do {
    got = read(fd, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

// vfork saves copying what exec throws away, 0.15 ms of 3.  The calling thread sleeps until the
// exec: while a slow disk delays that, it hears neither of the launcher nor of the lease.  If
// nothing renews the lease meanwhile, the launcher ends this process in time.
[[gnu::noinline]] pid_t start(Prepared& prepared, const Inherited& inherited, int report) {
  const pid_t parent = getpid();
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  // An extra safeguard: set-id programs clear it, and grandchildren do not inherit it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  inherited.restore();
  const int error = exec_first(prepared);
  while (write(report, &error, sizeof(error)) < 0 && errno == EINTR) {
  }
  _exit(127);
}

}  // namespace

Spawned spawn(const CommandSpec& spec, const Inherited& inherited) {
  std::vector<std::string> arguments = spec.argv;
  Prepared prepared;
  prepared.paths = candidates(spec.argv.front());
  prepared.variables = variables_of(spec);
  prepared.argv = pointers(arguments);
  prepared.argv.insert(prepared.argv.begin(), shell);
  prepared.envp = environment_with(pointers(prepared.variables), spec);

  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return {-1, errno};
  const Fd result(fds[0]);
  Fd report(fds[1]);
  const pid_t pid = start(prepared, inherited, report.get());
  if (pid < 0) return {-1, errno};
  report.reset();
  return {pid, read_result(result.get())};
}

std::string why_not_started(const std::string& command, int error) {
  const bool is_missing = error == ENOENT || error == ENOTDIR;
  const bool is_path = command.find('/') != std::string::npos;
  if (!is_missing) return command + ": " + strerror(error);
  if (is_path && access(command.c_str(), F_OK) == 0) {
    return command + ": its interpreter was not found (see its first line)";
  }
  const std::string shown = util::clipped(command, 80);
  const bool is_line = command.find_first_of(" |&;<>$") != std::string::npos;
  if (is_line) {
    if (command.size() > 80) return "command not found: \"" + shown + "\"; write -- sh -c 'LINE'";
    const bool is_plain = command.find_first_of("|&;<>$\"'") == std::string::npos;
    return "command not found: \"" + shown + "\"; write " +
           (is_plain ? "-- " + shown + ", or " : "") + "-- sh -c " + util::in_shell_quotes(shown);
  }
  if (is_path) return "command not found: " + shown;
  const char* path = getenv("PATH");
  return "command not found: " + shown +
         (path == nullptr ? " (PATH is not set)" : " (PATH=" + util::clipped(path, 200) + ')');
}

}  // namespace dlock
