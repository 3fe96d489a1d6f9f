// Passwords in what the user says, and how they are kept out of core files.
#pragma once

#include <string_view>

#include "core/url.hpp"

namespace dlock {

/// True if a reader of this URL learns a password: `redis://u:p@h`, `mysql://h?password=p`.
bool holds_password(const Url& url);

/// The same of each URL in a text, as in `DLOCK_SHARDS=redis://a,redis://u:p@b`.  A URL that cannot
/// be parsed is suspected if it names a user, and so is a very long text with an @.
bool mentions_password(std::string_view text);

/// Call this before a secret is used.  From then on this process, and each that it forks, leaves no
/// core file, and no debugger of the same user can attach to it.  exec ends that: the command of a
/// run can dump core as always.
void hide_memory();

}  // namespace dlock
