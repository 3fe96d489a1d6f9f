// What stands where records should be: on servers, in lock files, in names.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backends/file/record.hpp"
#include "backends/redis/foreign.hpp"
#include "backends/redis/names.hpp"
#include "backends/redis/record.hpp"
#include "core/lock_record.hpp"

using namespace dlock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto record = redis::parse_record(text)) {
    // What was read can be written, and read again.
    if (!redis::parse_record(redis::format_record(*record))) std::abort();
  }
  (void)parse_lock_record(text);
  (void)file::parse_header(text);
  for (const char* type : {"string", "hash", "zset", "list"}) {
    (void)redis::foreign_holder(type, text, text);
  }
  const std::string lock = redis::lock_of_queue(text);
  if (!lock.empty() && redis::names_of("", lock).queue != text) std::abort();
  (void)redis::belongs_to_a_lock(text, "dlock:");
  for (const char* prefix : {"", "dlock:"}) {
    const auto mark = redis::mark_of_key(text, prefix);
    if (mark && redis::record_key(prefix, *mark) != text) std::abort();
  }
  (void)redis::parse_mode_text(text);
  return 0;
}
