// Locks in words, for messages on stderr.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/backend.hpp"

namespace dlock {

/// `"a"`, `"a" and "b"`, `"a", "b" and 3 more`.
std::string keys_in_words(std::span<const std::string> keys);

/// A command without its directory.
std::string base_name(std::string_view command);

/// `app on web-3.example.net, pid 4121`, each text of at most `most` bytes; "" if nothing is known.
std::string party_in_words(const Owner& owner, std::size_t most);

/// `app on web-3.example.net, pid 4121 (cron.sh)`, as far as it is known.
std::string holder_in_words(const LockInfo::Holder& holder);

/// `web-3 pid 4121`: where there is no room for more.
std::string holder_in_brief(const LockInfo::Holder& holder);

/// The same of the first holder, and ` and 2 more` where several hold it.
std::string holders_in_words(const LockInfo& info);
std::string holders_in_brief(const LockInfo& info);

/// `held by app on web-3.example.net, pid 4121 (cron.sh), for 2m10s`.
std::string held_in_words(const std::string& holder, std::optional<Millis> held);

/// `for 2026-11-22, 2h10m ago, by app on web-3, pid 4121 (import.sh)`.
std::string mark_in_words(const Mark& mark);

/// `"import" was done for 2026-11-22, 2h10m ago, by app on web-3, pid 4121 (import.sh)`.
std::string done_in_words(const Mark& mark);

/// The number of waiters as the service counts them; none if it is not known.
std::optional<unsigned> count_waiters(const LockInfo& info);

}  // namespace dlock
