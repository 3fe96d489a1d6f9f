// Passwords in what the user says, and how they are kept out of core files.
#pragma once

#include <string>
#include <string_view>

#include "core/url.hpp"

namespace dlock {

/// True if a reader of this URL learns a password: `redis://u:p@h`, `mysql://h?password=p`.
bool holds_password(const Url& url);

/// The same of each URL in a text, as in `DLOCK_SHARDS=redis://a,redis://u:p@b`.  A URL that cannot
/// be parsed, or a very long text, is suspected if it has an @ or a "pass".
bool mentions_password(std::string_view text);

/// Whether a text in the place of a URL, or of several, may hold a password although it is none:
/// `redis:/u:p@h`.
bool may_be_bad_url(std::string_view text);

/// Whether a word of the user's may be a URL in the wrong place, with a password.
bool may_hold_password(std::string_view word);
/// Such a word, quoted for a message: nothing is shown from where a password could begin.
std::string shown_word(const std::string& word);

/// What a server has said, quoted for a message; not if the secret, or the beginning of a long one,
/// is in it: some repeat the command that they dislike.
std::string shown_answer(std::string_view text, std::string_view secret);

/// Call this before a secret is used.  From then on this process, and each that it forks, leaves no
/// core file, and no debugger of the same user can attach to it.  exec ends that: the command of a
/// run can dump core as always.
void hide_memory();

}  // namespace dlock
