#include "cli/values.hpp"

#include <algorithm>
#include <optional>

#include "cli/refusal.hpp"
#include "core/secret.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

constexpr std::size_t kLongestNote = 1'024;

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "1" || text == "true" || text == "yes") return true;
  if (text == "0" || text == "false" || text == "no") return false;
  return std::nullopt;
}

bool is_on(const Setting& setting, const Flag& flag) {
  if (flag.kind == ValueKind::boolean) return to_bool(setting);
  return flag.kind != ValueKind::count || to_count(setting, 2) > 0;
}

bool is_negative_number(std::string_view text) {
  return text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
}

}  // namespace

bool to_bool(const Setting& setting) {
  const auto value = parse_bool(setting.text());
  if (!value) refuse(setting, shown_word(setting.text()) + " is neither true nor false");
  return *value;
}

int to_count(const Setting& setting, int most) {
  int sum = 0;
  for (const std::string& text : setting.values) {
    const auto number = util::parse_int(text, 0, most);
    const auto truth = parse_bool(text);
    if (!number && !truth) {
      refuse(setting, shown_word(text) + " is not a number from 0 to " + std::to_string(most));
    }
    sum += number ? static_cast<int>(*number) : *truth ? 1 : 0;
  }
  return std::min(sum, most);
}

int to_number(const Setting& setting, const Flag& flag) {
  const auto value = util::parse_int(setting.text(), flag.range.low, flag.range.high);
  if (!value) {
    refuse(setting,
           shown_word(setting.text()) + " is not a number " + std::string(flag.range.words));
  }
  return static_cast<int>(*value);
}

Millis to_duration(const Setting& setting, const Flag& flag) {
  const auto value = util::parse_duration(setting.text());
  const Range& range = flag.range;
  if (value && !range.words.empty() &&
      (value->count() < range.low || value->count() > range.high)) {
    refuse(setting,
           shown_word(setting.text()) + " is out of range; it must be " + std::string(range.words));
  }
  if (value) return *value;
  if (is_negative_number(setting.text())) {
    refuse(setting, shown_word(setting.text()) + " is negative; a duration cannot be");
  }
  refuse(setting,
         shown_word(setting.text()) + " is not a duration; use d, h, m, s, ms, as in 90s or 1h30m");
}

std::size_t to_choice(const Setting& setting, const Flag& flag) {
  const auto found = std::find(flag.choices.begin(), flag.choices.end(), setting.text());
  if (found == flag.choices.end() || found->empty()) {
    refuse(setting, shown_word(setting.text()) + " is none of: " + choice_list(flag, ", ") +
                        (flag.name == "every" ? "; for another period: dlock run --min-hold" : ""));
  }
  return static_cast<std::size_t>(found - flag.choices.begin());
}

const std::string& to_text(const Setting& setting) {
  if (setting.text().empty()) refuse(setting, "is empty");
  return setting.text();
}

const std::string& to_note(const Setting& setting) {
  const std::string& text = setting.text();
  if (text.size() > kLongestNote) {
    refuse(setting, "is " + std::to_string(text.size()) + " bytes long; the most is " +
                        std::to_string(kLongestNote));
  }
  if (!util::is_utf8(text)) refuse(setting, "is not valid UTF-8");
  if (util::has_control(text)) refuse(setting, "holds a control character");
  return text;
}

std::vector<std::string_view> items_of(const Setting& setting) {
  std::vector<std::string_view> items;
  for (const std::string& value : setting.values) {
    std::string_view rest = value;
    for (bool more = true; more;) {
      const auto comma = rest.find(',');
      items.push_back(rest.substr(0, comma));
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
  }
  return items;
}

void check_value(const Setting& setting, const Flag& flag) {
  switch (flag.kind) {
    case ValueKind::number:
      to_number(setting, flag);
      break;
    case ValueKind::duration:
      to_duration(setting, flag);
      break;
    case ValueKind::boolean:
      to_bool(setting);
      break;
    case ValueKind::count:
      to_count(setting, 2);
      break;
    case ValueKind::text:
      if (!flag.choices.front().empty()) to_choice(setting, flag);
      break;
    case ValueKind::list:
      break;
  }
}

const Setting* effective(const Settings& settings, const Flag& given) {
  const Setting* mine = settings.find(given.name);
  if (mine == nullptr || !is_on(*mine, given)) return nullptr;
  const Setting* other = given.rival.empty() ? nullptr : settings.find(given.rival);
  if (other == nullptr || other->layer < mine->layer) return mine;
  if (!is_on(*other, flag(given.rival))) return mine;
  if (other->layer == mine->layer) refuse(*mine, "cannot be combined with " + other->where);
  return nullptr;
}

}  // namespace dlock::cli
