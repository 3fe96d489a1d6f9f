// Records in memory, for tests of what is made of them.
#pragma once

#include <functional>
#include <map>

#include "core/records.hpp"

namespace dlock::test {

class FakeRecords final : public Records {
 public:
  std::map<RecordName, StoredRecord> stored;
  std::int64_t now = 0;  // ms since 1970
  /// Called before each step, and again before its answer: may change `stored`.  True: that is
  /// lost, the request or the answer.
  std::function<bool()> disturb = [] { return false; };

  std::string shown(const RecordName& name) const override { return "fake " + name.key; }

  Result<RecordLook> read(const RecordName& name, Deadline) override {
    return step<RecordLook>([&] {
      const auto found = stored.find(name);
      RecordLook out{.records = {}, .now = now};
      if (found != stored.end()) out.records.push_back(found->second);
      return out;
    });
  }
  Result<RecordLook> list(std::string_view prefix, Deadline) override {
    return step<RecordLook>([&] {
      RecordLook out{.records = {}, .now = now};
      for (const auto& [name, record] : stored) {
        const bool is_mark = name.kind == RecordKind::mark;
        if (is_mark && name.key.starts_with(prefix)) out.records.push_back(record);
      }
      return out;
    });
  }
  Result<bool> write(const RecordName& name, const std::string& version, const std::string& text,
                     Deadline) override {
    return step<bool>([&] {
      if (version_of(name) != version) return false;
      put(name, text);
      return true;
    });
  }
  Result<std::size_t> remove(std::span<const StoredRecord> seen, Deadline) override {
    return step<std::size_t>([&] {
      std::size_t count = 0;
      for (const StoredRecord& record : seen) {
        if (version_of(record.name) == record.version) count += stored.erase(record.name);
      }
      return count;
    });
  }
  Result<void> prepare(std::string_view, Deadline) override { return {}; }
  Result<RecordLook> sample(std::string_view, Deadline deadline) override {
    return list("", deadline);
  }

  void put(const RecordName& name, const std::string& text) {
    stored[name] = {name, text, std::to_string(++writes_), now};
  }

 private:
  template <class T, class Do>
  Result<T> step(Do it) {
    const Error lost{Errc::unreachable, "no answer"};
    if (disturb()) return lost;
    T answer = it();
    if (disturb()) return lost;
    return answer;
  }
  std::string version_of(const RecordName& name) const {
    const auto found = stored.find(name);
    return found == stored.end() ? "" : found->second.version;
  }

  int writes_ = 0;
};

}  // namespace dlock::test
