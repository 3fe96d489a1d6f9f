// What was asked for, and by whom: flag over environment over config file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock {

/// Where a value was found.  A later one counts more.  Of two config files, that of the machine
/// counts less.
enum class Layer { machine, file, profile, environment, flag };

struct Setting {
  std::vector<std::string> values;  // at least one; only lists have more that count
  Layer layer = Layer::flag;
  std::string where;  // for messages: `--ttl`, `DLOCK_TTL` or `/etc/dlock/config.json:7: ttl`

  const std::string& text() const { return values.back(); }
  bool from_file() const { return layer <= Layer::profile; }
};

class Settings {
 public:
  /// Notes a setting under a name that outlives this object.  Of two under the same name the one of
  /// the higher layer stays, in whichever order they come.
  void put(std::string_view name, Setting setting);

  /// Null where nobody said anything.
  const Setting* find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, Setting>> settings_;
};

}  // namespace dlock
