// The lock service for the commands that show, break, renew or release locks.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/columns.hpp"
#include "cli/lock_columns.hpp"
#include "cli/parse.hpp"
#include "cli/select_backend.hpp"
#include "core/backend.hpp"
#include "core/settings.hpp"
#include "engine/exit_status.hpp"
#include "util/text.hpp"

namespace dlock::cli {

/// The beginnings of keys that the command line names.  Without any, all keys are wanted.
class KeyPrefixes {
 public:
  /// 'night*' means the keys that begin with night.
  explicit KeyPrefixes(std::vector<std::string> words) : prefixes_(std::move(words)) {
    for (std::string& prefix : prefixes_) {
      if (prefix.ends_with('*')) prefix.pop_back();
    }
    if (prefixes_.empty()) prefixes_.emplace_back();
  }

  /// The longest common beginning of all prefixes, so that one request is enough.
  std::string common() const {
    std::string out = prefixes_.front();
    for (const std::string& prefix : prefixes_) {
      const auto [end, other] = std::ranges::mismatch(out, prefix);
      out.erase(end, out.end());
    }
    return out;
  }
  bool has(const std::string& key) const {
    return std::ranges::any_of(prefixes_,
                               [&](const auto& prefix) { return key.starts_with(prefix); });
  }
  /// " that begin with "a" or "b""
  std::string in_words() const {
    std::string out;
    for (const std::string& prefix : prefixes_) {
      if (prefix.empty()) return "";
      out += (out.empty() ? " that begin with " : " or ") + util::in_quotes(prefix);
    }
    return out;
  }

 private:
  std::vector<std::string> prefixes_;
};

/// The backend that the command line selects, and the output options.
class LockService {
 public:
  /// Throws Refusal for settings that are invalid.
  LockService(const Invocation& invocation, Settings settings,
              std::span<const BackendEntry> backends);
  LockService(const Invocation& invocation, std::span<const BackendEntry> backends);

  const Settings& settings() const { return settings_; }
  const BackendEntry& entry() const { return *selection_.entry; }
  const Traits& traits() const { return selection_.entry->traits; }
  bool json() const { return json_; }
  /// "redis://h:6379/0 (profile prod)": for people.
  std::string place(const std::string& location) const;
  /// Whether the locks are in the default directory of this user (backend file).
  bool is_default_directory() const;
  /// " -b prod": the options of the command line that a pasted command needs to find the same
  /// locks.
  std::string same_backend() const { return options_of(settings_, selection_.target, Layer::flag); }
  /// The columns of --output; empty without that option.
  const Columns<LockRow>& columns() const { return columns_; }
  const KeyPrefixes& wanted() const { return wanted_; }
  /// The duration of --older-than.
  std::optional<Millis> older_than() const { return older_than_; }

  /// Opens a connection.  Open a new one after a pause: the old one may be closed.
  Result<std::unique_ptr<Backend>> open() const;
  /// The locks that are wanted, with the holders that are older than that.
  Result<Listing> list(Backend& backend) const;
  /// The deadline for one reply.
  Deadline patience() const;
  /// Prints the error and returns its exit status, which is `busy` for Errc::busy.
  int report(const Error& error, int busy = exit_status::kNo) const;

 private:
  Settings settings_;
  KeyPrefixes wanted_;
  Selection selection_;
  bool json_ = false;
  Columns<LockRow> columns_;
  std::optional<Millis> older_than_;
};

/// The operand as a key.  Refuses an invalid key.
const std::string& key_operand(const Invocation& invocation);

/// Prints why the answer is no, and returns exit status 1.
int no(const std::string& why);

/// "root on ops-1 (pid 12)": names this process to the holder whose lock it breaks.
std::string this_process_in_words();

/// The lock with only those holders that have held it for longer than `age`.
LockInfo with_older_holders(const LockInfo& lock, Millis age);

}  // namespace dlock::cli
