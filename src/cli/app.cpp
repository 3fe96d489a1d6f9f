#include "cli/app.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <CLI/Error.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "cli/help.hpp"
#include "cli/parse.hpp"
#include "cli/print_shell.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "core/secret.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/process_title.hpp"

namespace dlock::cli {
namespace {

using util::Level;

// The arguments before "--", which are dlock's own.
std::span<char* const> own(std::span<char* const> arguments) {
  const auto mark = std::find(arguments.begin(), arguments.end(), std::string_view("--"));
  return {arguments.begin(), mark};
}

// A password stays in memory even if another setting overrides it.
void hide_passwords(std::span<char* const> arguments) {
  const auto is_secret = [](std::string_view text) {
    return mentions_password(text) || may_be_bad_url(text);
  };
  bool found = std::any_of(arguments.begin(), arguments.end(), is_secret);
  for (char** variable = environ; !found && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    found = text.starts_with("DLOCK_") && is_secret(text);
  }
  if (found) hide_memory();
}

int dispatch(std::span<char* const> arguments, std::span<const BackendEntry> backends) {
  if (getauxval(AT_EUID) != getauxval(AT_UID) || getauxval(AT_EGID) != getauxval(AT_GID)) {
    throw Refusal(
        exit_status::kDenied,
        "dlock must not be set-user-ID or set-group-ID: each command would have these rights");
  }
  if (arguments.empty()) {  // as git, gh and kubectl do
    util::write_all(STDERR_FILENO, overview());
    return exit_status::kUsage;
  }
  const Invocation invocation = parse(arguments);
  // A command inherits the standard descriptors as they are, closed ones too.
  if (invocation.wrapped.empty()) util::occupy_standard_descriptors();
  if (invocation.has("help")) return write_stdout(help_of(*invocation.command));
  return invocation.command->execute(invocation, backends);
}

int guarded(std::span<char* const> arguments, std::span<const BackendEntry> backends) {
  try {
    return dispatch(arguments, backends);
  } catch (const Refusal& refusal) {
    const bool may_tell_more =
        refusal.status() == exit_status::kConfig && arguments.front() != std::string_view("doctor");
    util::log(Level::error,
              std::string(refusal.what()) + (may_tell_more ? "; see: dlock doctor" : ""));
    return refusal.status();
  } catch (const CLI::ParseError&) {
    // parse() leaves one error to CLI11: the last word before "--" lacks its value.
    util::log(Level::error, shown_word(own(arguments).back()) + " needs a value; see: dlock help " +
                                arguments.front());
    return exit_status::kUsage;
  } catch (const std::bad_alloc&) {
    util::log(Level::error, "out of memory");
    return exit_status::kInternal;
  } catch (const std::exception& error) {
    util::log(Level::error, std::string("internal error: ") + error.what());
    return exit_status::kInternal;
  }
}

// Whether a shell evaluates the output of `dlock acquire`.  This must be known even if the rest of
// the command line is wrong.
bool is_evaluated(std::span<char* const> arguments) {
  if (arguments.empty() || arguments.front() != std::string_view("acquire")) return false;
  const auto words = own(arguments);
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word == "--export" || word.starts_with("--export=");
  });
}

}  // namespace

int run_main(int argc, char** argv, std::span<const BackendEntry> backends) {
  util::note_arguments(argv);
  const std::span<char* const> all(argv, static_cast<std::size_t>(std::max(argc, 0)));
  const auto arguments = all.subspan(std::min<std::size_t>(all.size(), 1));
  hide_passwords(own(arguments));
  const int status = guarded(arguments, backends);
  if (status != 0 && is_evaluated(arguments)) {
    util::write_all(STDOUT_FILENO, print_failure(status));
  }
  util::log_flush();
  return status;
}

}  // namespace dlock::cli
