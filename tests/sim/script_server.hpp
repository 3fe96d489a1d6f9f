// A Redis server that runs the scripts of src/backends/redis/lua: the text that is shipped, by the
// Lua that Redis has, on a model of its keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "backends/redis/scripts.hpp"
#include "redis_model.hpp"

namespace dlock::sim {

/// What a script does wrong on purpose: each text `from` of it is `to`.
struct ScriptBug {
  const redis::Script* script = nullptr;
  std::string_view from;
  std::string_view to;
};

/// The text of a script that has this bug; it stays where it is.
std::string_view with_bug(std::string_view text, const ScriptBug& bug);

/// One thread for all of them.
class ScriptServer {
 public:
  RedisModel& data() { return model_; }

  /// As EVAL.  `text` is compiled once, and must stay where it is until the program ends.
  redis::Reply eval(std::string_view text, std::span<const std::string> keys,
                    std::span<const std::string> arguments);

 private:
  RedisModel model_;
};

}  // namespace dlock::sim
