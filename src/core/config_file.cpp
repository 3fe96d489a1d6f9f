#include "core/config_file.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/secret.hpp"
#include "core/trusted_file.hpp"
#include "util/text.hpp"

namespace dlock {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = 1'048'576;
// { "backends": { "name": { "servers": [ is as deep as it gets.
constexpr std::size_t kDeepest = 4;
constexpr std::string_view kProfiles = "backends";

// Iterates over the text and counts lines.  The parser reads one character beyond a number, but
// none beyond a string.  So in its key() callback, the count is the line of the key.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, unsigned* line) : at_(at), line_(line) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  unsigned* line_;
};

std::string_view expected(ValueKind kind) {
  switch (kind) {
    case ValueKind::text:
      return "a string";
    case ValueKind::number:
      return "a number";
    case ValueKind::duration:
      return "a duration: \"90s\", or a number of seconds";
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::count:
      return "a number, or true or false";
    case ValueKind::list:
      return "a string or an array of strings";
  }
  return "";
}

// Turns a token of the parser's message into plain words: "string literal" becomes "a text in
// quotes".
std::string token_in_words(std::string_view token, bool as_name) {
  if (token == "string literal") return as_name ? "a name in quotes" : "a text in quotes";
  if (token == "end of input") return "the end of the file";
  if (token == "number literal") return "a number";
  if (token == "'[', '{', or a literal") return "a value";
  if (token.size() == 3 && token.starts_with('\'')) return '"' + std::string(1, token[1]) + '"';
  return std::string(token);
}

// Rewrites a message such as "syntax error while parsing object key - unexpected '}'; expected
// string literal".  `before` is the text in front of the token that was not expected.
std::string in_plain_words(std::string_view what, std::string_view before) {
  constexpr std::string_view kFound = " - unexpected ";
  constexpr std::string_view kExpected = "; expected ";
  if (what.ends_with("invalid literal")) return "names and texts stand in double quotes";
  const auto found_at = what.find(kFound);
  const auto expected_at = what.find(kExpected);
  if (found_at == std::string_view::npos || expected_at == std::string_view::npos) {
    return std::string(what);
  }
  const auto begin = found_at + kFound.size();
  const std::string_view found = what.substr(begin, expected_at - begin);
  const std::string_view expected = what.substr(expected_at + kExpected.size());
  const bool as_name = what.substr(0, found_at).ends_with("object key");
  const bool may_end = expected == "'}'" || expected == "']'";
  std::string out = "expected " + token_in_words(expected, as_name) +
                    (may_end ? " or a comma" : "") + ", found " + token_in_words(found, false);
  const auto last = before.find_last_not_of(" \t\r\n");
  const bool after_comma = last != std::string_view::npos && before[last] == ',';
  if (after_comma && (found == "'}'" || found == "']'")) {
    out += "; is there a comma too many before it?";
  }
  if (may_end && found == "string literal") out += "; is a comma missing before it?";
  return out;
}

std::string at(const std::string& path, unsigned line) { return path + ':' + std::to_string(line); }

// The callbacks of the parser.  If one returns false, the parse ends, and error() has the reason.
class Reader : public nlohmann::json_sax<json> {
 public:
  Reader(std::string_view text, const std::string& path, ConfigFile& file, KeyKind kind_of,
         const unsigned& line)
      : text_(text), path_(path), file_(file), kind_of_(kind_of), line_(line) {}

  const Error& error() const { return error_; }

  bool null() override { return wrong_type(); }
  bool boolean(bool value) override {
    if (depth_ != key_depth_) return wrong_type();
    if (kind_ != ValueKind::boolean && kind_ != ValueKind::count) return wrong_type();
    return add(value ? "true" : "false");
  }
  bool number_integer(json::number_integer_t value) override {
    return number(std::to_string(value));
  }
  bool number_unsigned(json::number_unsigned_t value) override {
    return number(std::to_string(value));
  }
  bool number_float(json::number_float_t, const std::string& text) override { return number(text); }
  bool string(std::string& value) override {
    if (depth_ != key_depth_ && !in_list_) return wrong_type();
    if (kind_ != ValueKind::text && kind_ != ValueKind::duration && kind_ != ValueKind::list) {
      return wrong_type();
    }
    if (value.find('\0') != std::string::npos)
      return fail(util::in_quotes(key_) + " holds a NUL character");
    return add(value);
  }
  bool binary(json::binary_t&) override { return wrong_type(); }

  bool start_object(std::size_t) override {
    if (++depth_ > kDeepest) return fail("is nested too deeply");
    if (depth_ == 1) return true;
    if (depth_ == 2 && key_ == kProfiles) return true;
    if (depth_ == 3 && in_profiles_) return true;
    return wrong_type();
  }
  bool end_object() override {
    if (--depth_ == 1) in_profiles_ = false;
    if (depth_ == 2) profile_.clear();
    return true;
  }
  bool start_array(std::size_t) override {
    if (++depth_ > kDeepest) return fail("is nested too deeply");
    if (depth_ - 1 != key_depth_ || kind_ != ValueKind::list) return wrong_type();
    in_list_ = true;
    return true;
  }
  bool end_array() override {
    --depth_;
    in_list_ = false;
    return file_.entries.back().values.empty() ? fail(util::in_quotes(key_) + " is empty") : true;
  }

  bool key(std::string& name) override {
    key_ = name;
    key_line_ = line_;
    kind_.reset();
    if (depth_ == 1 && name == kProfiles) {
      if (had_profiles_) return fail("\"backends\" stands twice");
      had_profiles_ = in_profiles_ = true;
      return true;
    }
    if (depth_ == 2) return new_profile(name);
    const auto kind = kind_of_(name, depth_ == 3);
    if (!kind) {
      return fail("unknown key " + shown_word(name) + (depth_ == 3 ? " in a profile" : "") +
                  kind.error().message);
    }
    kind_ = kind.value();
    if (file_.find(profile_, name) != nullptr) return fail(util::in_quotes(name) + " stands twice");
    key_depth_ = depth_;
    file_.entries.push_back({profile_, name, {}, at(path_, key_line_)});
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The character at `position` - 1 is the one that was wrong.
    const std::size_t before = std::min(std::max<std::size_t>(position, 1) - 1, text_.size());
    key_line_ = 1 + static_cast<unsigned>(std::count(
                        text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(before), '\n'));
    // "[json.exception.parse_error.101] parse error at line 2, column 5: syntax error while ...".
    // The text that it read last may be a password.
    std::string_view what = error.what();
    if (const auto at = what.find("column "); at != std::string_view::npos) {
      what.remove_prefix(std::min(what.find(": ", at), what.size() - 2) + 2);
    }
    what = what.substr(0, what.find("; last read"));
    return fail(in_plain_words(what, text_.substr(0, before)));
  }

 private:
  bool fail(const std::string& why) {
    error_ = {Errc::invalid, at(path_, key_line_) + ": " + why};
    return false;
  }
  bool wrong_type() {
    if (depth_ == 0 || key_.empty()) return fail("the file must hold a JSON object: { ... }");
    if (in_profiles_ && profile_.empty()) {
      return fail(R"("backends" must be an object of profiles: { "name": { "url": ... } })");
    }
    if (!kind_) return fail("profile " + util::in_quotes(profile_) + " must be an object");
    return fail(util::in_quotes(key_) + " must be " + std::string(expected(*kind_)));
  }
  bool number(const std::string& text) {
    if (depth_ != key_depth_) return wrong_type();
    if (kind_ != ValueKind::number && kind_ != ValueKind::duration && kind_ != ValueKind::count) {
      return wrong_type();
    }
    return add(text);
  }
  bool add(std::string value) {
    const bool is_place =
        key_ == "backend" || key_ == "url" || key_ == "shards" || key_ == "servers";
    if (!file_.holds_password &&
        (mentions_password(value) || (is_place && may_be_bad_url(value)))) {
      hide_memory();
      file_.holds_password = true;
    }
    file_.entries.back().values.push_back(std::move(value));
    return true;
  }
  bool new_profile(const std::string& name) {
    if (name.empty() || util::has_control(name) || may_hold_password(name)) {  // it will be shown
      return fail(shown_word(name) + " cannot be the name of a profile");
    }
    if (file_.find_profile(name) != nullptr) {
      return fail("profile " + util::in_quotes(name) + " stands twice");
    }
    profile_ = name;
    file_.profiles.push_back({name, at(path_, key_line_)});
    return true;
  }

  std::string_view text_;
  const std::string& path_;
  ConfigFile& file_;
  KeyKind kind_of_;
  const unsigned& line_;
  Error error_{Errc::invalid, ""};

  std::size_t depth_ = 0;
  bool had_profiles_ = false;
  bool in_profiles_ = false;
  bool in_list_ = false;
  std::string profile_;
  std::string key_;
  unsigned key_line_ = 1;
  std::size_t key_depth_ = 0;  // of the object in which the key stands
  std::optional<ValueKind> kind_;
};

unsigned line_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<unsigned>(std::count(before.begin(), before.end(), '\n'));
}

}  // namespace

const ConfigProfile* ConfigFile::find_profile(std::string_view name) const {
  for (const ConfigProfile& profile : profiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

const ConfigEntry* ConfigFile::find(std::string_view profile, std::string_view key) const {
  for (const ConfigEntry& entry : entries) {
    if (entry.profile == profile && entry.key == key) return &entry;
  }
  return nullptr;
}

void ConfigFile::add(ConfigFile other) {
  for (ConfigEntry& entry : other.entries) {
    entry.is_added = true;
    const bool is_hidden = !entry.profile.empty() && find_profile(entry.profile) != nullptr;
    if (!is_hidden) entries.push_back(std::move(entry));
  }
  for (ConfigProfile& profile : other.profiles) {
    if (find_profile(profile.name) == nullptr) profiles.push_back(std::move(profile));
  }
}

Result<ConfigFile> parse_config(std::string_view text, const std::string& path, KeyKind kind_of) {
  ConfigFile file;
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return Error{Errc::invalid, at(path, line_of(text, nul)) + ": holds a NUL byte"};
  }
  if (!util::is_utf8(text)) {
    std::size_t end = text.size();  // the shortest beginning that is whole lines and not UTF-8
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t stop = std::min(text.find('\n', at), text.size());
      if (!util::is_utf8(text.substr(at, stop - at))) {
        end = at;
        break;
      }
      at = stop + 1;
    }
    return Error{Errc::invalid, at(path, line_of(text, end)) + ": is not valid UTF-8"};
  }
  unsigned line = 1;
  Reader reader(text, path, file, kind_of, line);
  if (!json::sax_parse(CountingIterator(text.data(), &line),
                       CountingIterator(text.data() + text.size(), &line), &reader)) {
    return reader.error();
  }
  return file;
}

Result<std::optional<ConfigFile>> read_config(const std::string& path, KeyKind kind_of) {
  const auto text = read_trusted(path, kMostBytes);
  if (!text) return Error{Errc::denied, text.error().message};
  if (!text.value()) return std::optional<ConfigFile>();
  auto file = parse_config(text.value()->text, path, kind_of);
  if (!file) return file.error();
  if (file->holds_password) {
    if (auto ok = check_private(path, *text.value(), "a password"); !ok) return ok.error();
  }
  return std::optional(std::move(*file));
}

}  // namespace dlock
