// The settings and their places.  The command line overrides the environment, and that overrides
// the config files.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock {

/// The place of a setting.  A later one overrides an earlier one.  The user's config file overrides
/// that of the machine.
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
  /// Stores a setting under a name that must outlive this object.  Of two settings with the same
  /// name, the one of the higher layer stays, in either order.
  void put(std::string_view name, Setting setting);

  /// Null if there is no such setting.
  const Setting* find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string_view, Setting>> settings_;
};

}  // namespace dlock
