#include "redis_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "util/text.hpp"

namespace dlock::sim {
namespace {

using redis::Reply;

constexpr const char* kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr const char* kNoInteger = "ERR value is not an integer or out of range";
constexpr const char* kSyntax = "ERR syntax error";

/// What the server refuses.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

RedisModel::Answer integer(std::int64_t number) {
  return {{.kind = Reply::Kind::integer, .integer = number, .text = {}, .items = {}}};
}
Reply as_text(std::string text) {
  return {.kind = Reply::Kind::text, .text = std::move(text), .items = {}};
}
RedisModel::Answer text(std::string text) { return {as_text(std::move(text))}; }
RedisModel::Answer status(std::string word) { return {as_text(std::move(word)), true}; }
RedisModel::Answer error(std::string why) {
  return {{.kind = Reply::Kind::error, .text = std::move(why), .items = {}}};
}
RedisModel::Answer texts(std::vector<std::string> all) {
  RedisModel::Answer out{{.kind = Reply::Kind::array, .text = {}, .items = {}}};
  for (std::string& one : all) out.reply.items.push_back(as_text(std::move(one)));
  return out;
}

std::int64_t number(const std::string& text) {
  const auto parsed = util::parse_int(text, std::numeric_limits<std::int64_t>::min(),
                                      std::numeric_limits<std::int64_t>::max());
  if (!parsed) throw Refused(kNoInteger);
  return *parsed;
}

double score(const std::string& text) {
  std::size_t size = 0;
  double out = 0;
  try {
    out = std::stod(text, &size);
  } catch (const std::exception&) {
    size = 0;
  }
  if (size == 0 || size != text.size() || std::isnan(out)) {
    throw Refused("ERR value is not a valid float");
  }
  return out;
}

std::string in_digits(double score) {
  constexpr double kExact = 9e15;
  if (std::abs(score) < kExact && score == std::trunc(score)) {
    return std::to_string(static_cast<std::int64_t>(score));
  }
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%.17g", score);
  return out.data();
}

/// "(3", "3", "-inf".
struct Limit {
  explicit Limit(const std::string& text)
      : excluded(text.starts_with('(')), at(score(excluded ? text.substr(1) : text)) {}
  bool is_above(double score) const { return excluded ? score > at : score >= at; }
  bool is_below(double score) const { return excluded ? score < at : score <= at; }
  bool excluded;
  double at;
};

/// As GETRANGE and ZRANGE count: from the end if negative; both ends belong to it.
std::pair<std::size_t, std::size_t> range(std::int64_t first, std::int64_t last, std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  if (first < 0) first = std::max<std::int64_t>(first + length, 0);
  if (last < 0) last += length;
  last = std::min(last, length - 1);
  if (first > last || length == 0) return {0, 0};
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last + 1)};
}

}  // namespace

struct RedisModel::Command {
  std::string_view name;
  std::size_t least_words;
  Answer (RedisModel::*run)(Words);
};

RedisModel::Answer RedisModel::call(Words words) {
  static constexpr std::array kCommands{Command{"TIME", 1, &RedisModel::time},
                                        Command{"GET", 2, &RedisModel::get},
                                        Command{"SET", 3, &RedisModel::set},
                                        Command{"GETRANGE", 4, &RedisModel::getrange},
                                        Command{"INCR", 2, &RedisModel::incr},
                                        Command{"DEL", 2, &RedisModel::del},
                                        Command{"EXISTS", 2, &RedisModel::exists},
                                        Command{"TYPE", 2, &RedisModel::type},
                                        Command{"PTTL", 2, &RedisModel::pttl},
                                        Command{"PEXPIRE", 3, &RedisModel::pexpire},
                                        Command{"PEXPIREAT", 3, &RedisModel::pexpireat},
                                        Command{"PERSIST", 2, &RedisModel::persist},
                                        Command{"HGET", 3, &RedisModel::hget},
                                        Command{"HSET", 4, &RedisModel::hset},
                                        Command{"HDEL", 3, &RedisModel::hdel},
                                        Command{"HEXISTS", 3, &RedisModel::hexists},
                                        Command{"HLEN", 2, &RedisModel::hlen},
                                        Command{"HSCAN", 3, &RedisModel::hscan},
                                        Command{"ZADD", 4, &RedisModel::zadd},
                                        Command{"ZREM", 3, &RedisModel::zrem},
                                        Command{"ZRANGE", 4, &RedisModel::zrange},
                                        Command{"ZRANGEBYSCORE", 4, &RedisModel::zrangebyscore},
                                        Command{"ZSCORE", 3, &RedisModel::zscore},
                                        Command{"ZCARD", 2, &RedisModel::zcard},
                                        Command{"ZRANK", 3, &RedisModel::zrank},
                                        Command{"PUBLISH", 3, &RedisModel::publish},
                                        Command{"PUBSUB", 3, &RedisModel::pubsub}};
  const auto* const found = std::find_if(kCommands.begin(), kCommands.end(),
                                         [&](const auto& it) { return words[0] == it.name; });
  if (found == kCommands.end()) return error("ERR unknown command");
  if (words.size() < found->least_words) return error("ERR wrong number of arguments");
  try {
    return (this->*found->run)(words.subspan(1));
  } catch (const Refused& refused) {
    return error(refused.what());
  }
}

// ------------------------------------------------------------------------------------- the keys

RedisModel::Value* RedisModel::find(const std::string& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  if (!found->second.ends || now_ms() <= *found->second.ends) return &found->second;
  keys_.erase(found);
  return nullptr;
}

template <class Content>
Content* RedisModel::find(const std::string& key) {
  Value* const value = find(key);
  if (value == nullptr) return nullptr;
  Content* const content = std::get_if<Content>(&value->content);
  if (content == nullptr) throw Refused(kWrongType);
  return content;
}

template <class Content>
Content& RedisModel::make(const std::string& key) {
  if (Content* const there = find<Content>(key)) return *there;
  return std::get<Content>((keys_[key] = {Content(), std::nullopt}).content);
}

template <class Content>
void RedisModel::drop_empty(const std::string& key) {
  if (const Content* const there = find<Content>(key); there && there->empty()) keys_.erase(key);
}

bool RedisModel::end_at(const std::string& key, std::int64_t ms) {
  Value* const value = find(key);
  if (value == nullptr) return false;
  value->ends = ms;
  if (ms <= now_ms()) keys_.erase(key);
  return true;
}

std::vector<RedisModel::Holder> RedisModel::holders(const std::string& lock) {
  const Value* const value = find(lock);
  if (value == nullptr) return {};
  if (const auto* const id = std::get_if<std::string>(&value->content)) {
    return {{*id, value->ends.value_or(std::numeric_limits<std::int64_t>::max())}};
  }
  std::vector<Holder> out;
  if (const auto* const set = std::get_if<SortedSet>(&value->content)) {
    for (const auto& [ends, id] : *set) {
      if (ends > static_cast<double>(now_ms()))
        out.push_back({id, static_cast<std::int64_t>(ends)});
    }
  }
  return out;
}

std::string RedisModel::contents() {
  std::string out;
  std::vector<std::string> names;
  for (const auto& [name, value] : keys_) names.push_back(name);
  for (const std::string& name : names) {
    const Value* const value = find(name);
    if (value == nullptr) continue;
    out += name + " =";
    if (const auto* const string = std::get_if<std::string>(&value->content)) {
      out += " " + *string;
    } else if (const auto* const set = std::get_if<SortedSet>(&value->content)) {
      for (const auto& [its_score, member] : *set) out += " " + member + ":" + in_digits(its_score);
    } else {
      Hash fields = std::get<Hash>(value->content);
      std::sort(fields.begin(), fields.end());
      for (const auto& [field, its_text] : fields) out += " " + field + "=" + its_text;
    }
    out += " until " + std::to_string(value->ends.value_or(-1)) + '\n';
  }
  return out;
}

// --------------------------------------------------------------------------- strings, any key

RedisModel::Answer RedisModel::time(Words) {
  return texts({std::to_string(now_us_ / 1'000'000), std::to_string(now_us_ % 1'000'000)});
}

RedisModel::Answer RedisModel::get(Words words) {
  const auto* const there = find<std::string>(words[0]);
  return there == nullptr ? RedisModel::Answer() : text(*there);
}

RedisModel::Answer RedisModel::set(Words words) {
  std::optional<std::int64_t> ends;
  bool only_new = false;
  bool only_old = false;
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "NX") {
      only_new = true;
    } else if (words[i] == "XX") {
      only_old = true;
    } else if (words[i] == "PX" && i + 1 < words.size()) {
      const std::int64_t ms = number(words[++i]);
      if (ms <= 0) throw Refused("ERR invalid expire time in 'set' command");
      ends = now_ms() + ms;
    } else {
      throw Refused(kSyntax);
    }
  }
  const bool is_there = find(words[0]) != nullptr;
  if ((only_new && is_there) || (only_old && !is_there)) return {};
  keys_[words[0]] = {words[1], ends};
  return status("OK");
}

RedisModel::Answer RedisModel::getrange(Words words) {
  const std::int64_t first = number(words[1]);
  const std::int64_t last = number(words[2]);
  const auto* const there = find<std::string>(words[0]);
  if (there == nullptr) return text("");
  if (first < 0 && last < 0 && first > last) return text("");
  const auto [from, to] = range(first, last, there->size());
  return text(there->substr(from, to - from));
}

RedisModel::Answer RedisModel::incr(Words words) {
  const auto* const there = find<std::string>(words[0]);
  const std::int64_t before = there == nullptr ? 0 : number(*there);
  if (before == std::numeric_limits<std::int64_t>::max()) {
    throw Refused("ERR increment or decrement would overflow");
  }
  make<std::string>(words[0]) = std::to_string(before + 1);
  return integer(before + 1);
}

RedisModel::Answer RedisModel::del(Words words) {
  std::int64_t count = 0;
  for (const std::string& key : words) {
    if (find(key) == nullptr) continue;
    keys_.erase(key);
    ++count;
  }
  return integer(count);
}

RedisModel::Answer RedisModel::exists(Words words) {
  return integer(std::count_if(words.begin(), words.end(),
                               [&](const std::string& key) { return find(key) != nullptr; }));
}

RedisModel::Answer RedisModel::type(Words words) {
  const Value* const value = find(words[0]);
  if (value == nullptr) return status("none");
  if (std::holds_alternative<std::string>(value->content)) return status("string");
  return status(std::holds_alternative<Hash>(value->content) ? "hash" : "zset");
}

RedisModel::Answer RedisModel::pttl(Words words) {
  const Value* const value = find(words[0]);
  if (value == nullptr) return integer(-2);
  return integer(value->ends ? *value->ends - now_ms() : -1);
}

RedisModel::Answer RedisModel::pexpire(Words words) {
  return integer(end_at(words[0], now_ms() + number(words[1])) ? 1 : 0);
}

RedisModel::Answer RedisModel::pexpireat(Words words) {
  return integer(end_at(words[0], number(words[1])) ? 1 : 0);
}

RedisModel::Answer RedisModel::persist(Words words) {
  Value* const value = find(words[0]);
  if (value == nullptr || !value->ends) return integer(0);
  value->ends.reset();
  return integer(1);
}

// ---------------------------------------------------------------------------------------- hashes

RedisModel::Answer RedisModel::hget(Words words) {
  const Hash* const hash = find<Hash>(words[0]);
  if (hash == nullptr) return {};
  const auto field = std::ranges::find(*hash, words[1], &Field::first);
  return field == hash->end() ? RedisModel::Answer() : text(field->second);
}

RedisModel::Answer RedisModel::hset(Words words) {
  if (words.size() % 2 == 0) return error("ERR wrong number of arguments for 'hset' command");
  Hash& hash = make<Hash>(words[0]);
  std::int64_t added = 0;
  for (std::size_t i = 1; i < words.size(); i += 2) {
    if (const auto field = std::ranges::find(hash, words[i], &Field::first); field != hash.end()) {
      field->second = words[i + 1];
    } else {
      hash.emplace_back(words[i], words[i + 1]);
      ++added;
    }
  }
  return integer(added);
}

RedisModel::Answer RedisModel::hdel(Words words) {
  Hash* const hash = find<Hash>(words[0]);
  if (hash == nullptr) return integer(0);
  const auto count = std::erase_if(*hash, [&](const Field& field) {
    return std::find(words.begin() + 1, words.end(), field.first) != words.end();
  });
  drop_empty<Hash>(words[0]);
  return integer(static_cast<std::int64_t>(count));
}

RedisModel::Answer RedisModel::hexists(Words words) {
  const Hash* const hash = find<Hash>(words[0]);
  return integer(
      hash != nullptr && std::ranges::find(*hash, words[1], &Field::first) != hash->end() ? 1 : 0);
}

RedisModel::Answer RedisModel::hlen(Words words) {
  const Hash* const hash = find<Hash>(words[0]);
  return integer(hash == nullptr ? 0 : static_cast<std::int64_t>(hash->size()));
}

// All at once, which a server may do.  A pattern is a text and '*'.
RedisModel::Answer RedisModel::hscan(Words words) {
  std::string beginning;
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    if (words[i] != "MATCH") continue;
    beginning = words[i + 1].substr(0, words[i + 1].size() - 1);
  }
  const Hash* const hash = find<Hash>(words[0]);
  std::vector<std::string> found;
  for (const auto& [field, its_text] : hash == nullptr ? Hash() : *hash) {
    if (field.starts_with(beginning)) found.insert(found.end(), {field, its_text});
  }
  RedisModel::Answer out = texts({"0"});
  out.reply.items.push_back(texts(std::move(found)).reply);
  return out;
}

// ----------------------------------------------------------------------------------- sorted sets

RedisModel::Answer RedisModel::zadd(Words words) {
  const bool only_new = words[1] == "NX";
  const bool only_old = words[1] == "XX";
  const std::size_t from = only_new || only_old ? 2 : 1;
  if (words.size() != from + 2) throw Refused(kSyntax);
  const double its_score = score(words[from]);
  if (only_old && find<SortedSet>(words[0]) == nullptr) return integer(0);
  SortedSet& set = make<SortedSet>(words[0]);
  const auto there = std::ranges::find(set, words[from + 1], &Member::second);
  const bool is_new = there == set.end();
  if (is_new ? only_old : only_new) return integer(0);
  if (!is_new) set.erase(there);
  const Member member{its_score, words[from + 1]};
  set.insert(std::upper_bound(set.begin(), set.end(), member), member);
  return integer(is_new ? 1 : 0);
}

RedisModel::Answer RedisModel::zrem(Words words) {
  SortedSet* const set = find<SortedSet>(words[0]);
  if (set == nullptr) return integer(0);
  const auto count = std::erase_if(*set, [&](const Member& member) {
    return std::find(words.begin() + 1, words.end(), member.second) != words.end();
  });
  drop_empty<SortedSet>(words[0]);
  return integer(static_cast<std::int64_t>(count));
}

RedisModel::Answer RedisModel::zrange(Words words) {
  const std::int64_t first = number(words[1]);
  const std::int64_t last = number(words[2]);
  const bool with_scores = words.size() > 3 && words[3] == "WITHSCORES";
  const SortedSet* const set = find<SortedSet>(words[0]);
  if (set == nullptr) return texts({});
  const auto [from, to] = range(first, last, set->size());
  std::vector<std::string> out;
  for (std::size_t i = from; i < to; ++i) {
    out.push_back(set->at(i).second);
    if (with_scores) out.push_back(in_digits(set->at(i).first));
  }
  return texts(std::move(out));
}

RedisModel::Answer RedisModel::zrangebyscore(Words words) {
  const Limit low(words[1]);
  const Limit high(words[2]);
  bool with_scores = false;
  std::size_t skip = 0;
  std::size_t most = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "WITHSCORES") {
      with_scores = true;
    } else if (words[i] == "LIMIT" && i + 2 < words.size()) {
      skip = static_cast<std::size_t>(number(words[i + 1]));
      most = static_cast<std::size_t>(number(words[i + 2]));
      i += 2;
    } else {
      throw Refused(kSyntax);
    }
  }
  const SortedSet* const set = find<SortedSet>(words[0]);
  std::vector<std::string> out;
  for (const auto& [its_score, member] : set == nullptr ? SortedSet() : *set) {
    if (!low.is_above(its_score) || !high.is_below(its_score)) continue;
    if (skip > 0) {
      --skip;
    } else if (most > 0) {
      --most;
      out.push_back(member);
      if (with_scores) out.push_back(in_digits(its_score));
    }
  }
  return texts(std::move(out));
}

RedisModel::Answer RedisModel::zscore(Words words) {
  const SortedSet* const set = find<SortedSet>(words[0]);
  if (set == nullptr) return {};
  const auto there = std::ranges::find(*set, words[1], &Member::second);
  return there == set->end() ? RedisModel::Answer() : text(in_digits(there->first));
}

RedisModel::Answer RedisModel::zcard(Words words) {
  const SortedSet* const set = find<SortedSet>(words[0]);
  return integer(set == nullptr ? 0 : static_cast<std::int64_t>(set->size()));
}

RedisModel::Answer RedisModel::zrank(Words words) {
  const SortedSet* const set = find<SortedSet>(words[0]);
  if (set == nullptr) return {};
  const auto there = std::ranges::find(*set, words[1], &Member::second);
  return there == set->end() ? RedisModel::Answer() : integer(there - set->begin());
}

// -------------------------------------------------------------------------------------- messages

RedisModel::Answer RedisModel::publish(Words words) {
  const auto found = listeners_.find(words[0]);
  const unsigned heard = found == listeners_.end() ? 0 : found->second;
  if (heard > 0) messages_.emplace_back(words[0], words[1]);
  return integer(heard);
}

RedisModel::Answer RedisModel::pubsub(Words words) {
  if (words[0] != "NUMSUB") throw Refused(kSyntax);
  const auto found = listeners_.find(words[1]);
  RedisModel::Answer out = texts({words[1]});
  out.reply.items.push_back(integer(found == listeners_.end() ? 0 : found->second).reply);
  return out;
}

}  // namespace dlock::sim
