// A URL may contain commas, between its hosts.  A comma separates two URLs only if a scheme follows
// it.
#include "cli/shards.hpp"

#include <string>
#include <string_view>

#include "cli/refusal.hpp"

namespace dlock::cli {
namespace {

bool begins_url(std::string_view text) {
  return looks_like_url(text) && is_scheme(text.substr(0, text.find("://")));
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t from = 0;
  for (std::size_t at = text.find(','); at != std::string_view::npos; at = text.find(',', at + 1)) {
    if (!begins_url(text.substr(at + 1))) continue;
    parts.push_back(text.substr(from, at - from));
    from = at + 1;
  }
  parts.push_back(text.substr(from));
  return parts;
}

}  // namespace

std::vector<Url> shard_urls(const Setting& shards) {
  std::vector<std::string_view> parts;
  for (const std::string& value : shards.values) {
    for (const std::string_view part : parts_of(value)) parts.push_back(part);
  }
  std::vector<Url> urls;
  for (const std::string_view part : parts) {
    auto url = parse_url(part);
    if (url) {
      urls.push_back(std::move(*url));
      continue;
    }
    const std::string which = shard_rank(urls.size(), parts.size());
    if (!looks_like_url(part)) {
      refuse(shards, which + " must be a URL, as in redis://host:6379/0");
    }
    refuse(shards, which + ": " + url.error().message);
  }
  return urls;
}

std::string shard_rank(std::size_t i, std::size_t count) {
  return "shard " + std::to_string(i + 1) + " of " + std::to_string(count);
}

}  // namespace dlock::cli
