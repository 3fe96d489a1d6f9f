#include "core/settings.hpp"

namespace dlock {

void Settings::put(std::string_view name, Setting setting) {
  for (auto& [known, value] : settings_) {
    if (known != name) continue;
    if (setting.layer >= value.layer) value = std::move(setting);
    return;
  }
  settings_.emplace_back(name, std::move(setting));
}

const Setting* Settings::find(std::string_view name) const {
  for (const auto& [known, value] : settings_) {
    if (known == name) return &value;
  }
  return nullptr;
}

}  // namespace dlock
