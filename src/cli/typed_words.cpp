#include "cli/typed_words.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace dlock::cli {
namespace {

// One word with an option: --backend, --backend=prod, -b, -bprod, -qb.
struct OptionWord {
  const Flag* flag = nullptr;  // null: an unknown option
  std::size_t head = 0;        // the length of what is before the value
  bool has_value = false;      // in this word
};

OptionWord read_option(std::string_view word, const Command& command) {
  if (word.starts_with("--")) {
    const auto equals = std::min(word.find('='), word.size());
    const Flag* flag = flag_named(word.substr(2, equals - 2), command);
    return {flag, std::min(equals + 1, word.size()), equals != word.size()};
  }
  OptionWord option;
  for (std::size_t i = 1; i < word.size(); ++i) {
    option = {flag_with(word[i], command), i + 1, i + 1 < word.size()};
    if (option.flag == nullptr || option.flag->takes_value()) return option;
  }
  option.has_value = false;
  return option;
}

bool is_option(std::string_view word) { return word.size() > 1 && word.starts_with('-'); }

void add_value(Invocation& said, const Flag& flag, std::string value) {
  // The shell expands this when the command runs, and not before.
  const char* home = std::getenv("HOME");
  if (flag.completes == Completes::files && value.starts_with("~/") && home != nullptr) {
    value.replace(0, 1, home);
  }
  const auto given = std::ranges::find(said.flags, &flag, &Invocation::Given::flag);
  if (given == said.flags.end()) {
    said.flags.push_back({&flag, {std::move(value)}});
  } else {
    given->values.push_back(std::move(value));
  }
}

// Takes a word before the cursor.
void take_word(TypedWords& typed, const std::string& word) {
  Invocation& said = typed.said;
  if (word == "--" && !typed.has_mark) {
    typed.has_mark = true;
    typed.asked = nullptr;
  } else if (typed.asked != nullptr) {
    add_value(said, *typed.asked, word);
    typed.asked = nullptr;
  } else if (is_option(word) && !typed.has_mark) {
    const OptionWord option = read_option(word, *said.command);
    if (option.flag == nullptr) return;
    if (option.flag->takes_value() && !option.has_value) {
      typed.asked = option.flag;
    } else {
      add_value(said, *option.flag, word.substr(option.head));
    }
  } else {
    said.operands.push_back(word);
  }
}

}  // namespace

TypedWords read_typed_words(std::span<const std::string> words) {
  TypedWords typed;
  if (words.empty()) return typed;
  typed.text = words.back();
  typed.is_command = words.size() == 1;
  if (!typed.is_command) typed.said.command = find_command(words.front());
  if (typed.said.command == nullptr) return typed;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    take_word(typed, words[i]);
    if (!typed.has_mark || !typed.said.command->wraps) continue;
    typed.command_at = i + 2;
    return typed;
  }
  if (typed.asked != nullptr || typed.has_mark || !is_option(typed.text)) return typed;
  const OptionWord option = read_option(typed.text, *typed.said.command);
  if (option.flag == nullptr || !option.has_value) return typed;
  typed.asked = option.flag;
  typed.head = typed.text.substr(0, option.head);
  typed.text.erase(0, option.head);
  return typed;
}

}  // namespace dlock::cli
