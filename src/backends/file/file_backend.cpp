#include "backends/file/file_backend.hpp"

#include <utility>

#include "backends/file/acquire.hpp"
#include "backends/file/file_records.hpp"
#include "backends/file/force_release.hpp"
#include "backends/file/inspect.hpp"
#include "backends/file/lock_dir.hpp"
#include "backends/file/url_forms.hpp"
#include "core/spelling.hpp"
#include "util/text.hpp"

namespace dlock::file {
namespace {

// A path as it stands in a URL: only what would end or change it is escaped.
std::string url_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte > ' ' && byte < 0x7F && c != '%' && c != '?' && c != '#' && c != '@';
    if (plain) {
      out += c;
    } else {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

bool trusts_all(const Url& url) {
  const auto trust = url.query.find("trust");
  return url.query.size() == 1 && trust != url.query.end() && trust->second == "all";
}

class FileBackend final : public Backend {
 public:
  FileBackend(std::shared_ptr<const LockDir> dir, const WaitIntervals& intervals)
      : dir_(std::move(dir)), intervals_(intervals), records_(make_records(dir_)) {}

  std::string location() const override { return "file://" + url_path(dir_->path()); }

  Result<std::unique_ptr<Lease>> acquire(const Request& request, const Wait& wait) override {
    return file::acquire(dir_, request, wait, intervals_);
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix, Deadline) override {
    return look_at_all(dir_, prefix);
  }

  Result<LockInfo> inspect(std::string_view key, Deadline) override { return look(dir_, key); }

  Result<bool> force_release(std::string_view key, std::string_view owner_id, const Reason& reason,
                             Deadline deadline) override {
    return file::force_release(dir_, key, owner_id, reason, deadline);
  }

  Records* records() override { return records_.get(); }

 private:
  std::shared_ptr<const LockDir> dir_;
  const WaitIntervals intervals_;
  const std::unique_ptr<Records> records_;
};

}  // namespace

Result<std::string> place(const Target& target) {
  const Url& url = target.url;
  if (auto ok = complete_url(url, kUrlForms); !ok) return ok.error();
  const auto bad = [](const char* why) { return Error{Errc::invalid, why}; };
  if (trusts_all(url) && url.path.empty()) return bad("trust=all needs a directory that is named");
  if (!url.path.empty() && url.path.find_first_not_of('/') == std::string::npos) {
    return bad("the URL names no directory; one is file:///var/lock/jobs");
  }
  // Dropped silently it would merge the locks of two users that want separate ones.
  if (target.prefix)
    return bad(
        "the file backend has no prefix; give another directory, or list keys by their "
        "beginning: dlock list KEY-PREFIX");
  return "file://" + canonical_path(url.path.empty() ? default_path() : url.path);
}

Result<std::unique_ptr<Backend>> open(const Target& target, Deadline, Cancel) {
  return open_with(target, WaitIntervals());
}

Result<std::unique_ptr<Backend>> open_with(const Target& target, const WaitIntervals& intervals) {
  if (auto ok = place(target); !ok) return ok.error();
  std::string path = target.url.path;
  while (path.ends_with('/')) path.pop_back();  // or a link as last part would be followed
  auto dir = LockDir::open(path, trusts_all(target.url) ? Trust::all : Trust::named);
  if (!dir) return dir.error();
  return std::make_unique<FileBackend>(std::move(*dir), intervals);
}

}  // namespace dlock::file
