// A Redis server that runs the scripts of src/backends/redis/lua: the text that is shipped, by the
// Lua that Redis has, on a model of its keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "redis_model.hpp"

namespace dlock::sim {

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
