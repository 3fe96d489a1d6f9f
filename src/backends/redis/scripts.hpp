// The Lua scripts of lua/, as the server gets them.  scripts.cpp is made from them by CMake.
#pragma once

#include <string_view>

namespace dlock::redis {

struct Script {
  std::string_view sha1;  // of the text, in hex: how the server knows it once it was sent
  std::string_view text;
  std::string_view name;
};

extern const Script kAsk;
extern const Script kBreak;
extern const Script kComplete;
extern const Script kLeave;
extern const Script kLook;
extern const Script kPut;
extern const Script kRenew;
extern const Script kVote;

}  // namespace dlock::redis
