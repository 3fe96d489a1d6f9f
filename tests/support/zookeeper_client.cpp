// The protocol is that of zookeeper.jute: big-endian numbers, lengths before strings and vectors.
#include "support/zookeeper_client.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "util/poll.hpp"

namespace dlock::test {
namespace {

constexpr Millis kPatience{20'000};
constexpr Millis kAnswerTime{500};  // of a four-letter word
constexpr int kTimeoutMs = 60'000;
constexpr int kAuthXid = -4;
const std::string kExpired = "zookeeper: SessionExpired";
constexpr int kNoNode = -101;

enum Type {
  kCreate = 1,
  kDelete = 2,
  kExists = 3,
  kGetData = 4,
  kSetData = 5,
  kGetAcl = 6,
  kSetAcl = 7,
  kGetChildren = 8,
  kCreateContainer = 19,
  kAuth = 100,
  kClose = -11
};

std::string error_name(int code) {
  static const std::map<int, std::string> names{{-4, "ConnectionLoss"},
                                                {-5, "MarshallingError"},
                                                {-8, "BadArguments"},
                                                {-101, "NoNode"},
                                                {-102, "NoAuth"},
                                                {-103, "BadVersion"},
                                                {-108, "NoChildrenForEphemerals"},
                                                {-110, "NodeExists"},
                                                {-111, "NotEmpty"},
                                                {-112, "SessionExpired"},
                                                {-114, "InvalidACL"},
                                                {-115, "AuthFailed"}};
  const auto found = names.find(code);
  return found != names.end() ? found->second : "error " + std::to_string(code);
}

std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}
std::string int32(std::int64_t value) { return number(static_cast<std::uint64_t>(value), 4); }
std::string int64(std::int64_t value) { return number(static_cast<std::uint64_t>(value), 8); }
std::string text(const std::string& value) {
  return int32(static_cast<std::int64_t>(value.size())) + value;
}

constexpr std::string_view kRights = "rwcda";  // as bits, from the lowest

std::string acl_vector(const std::string& acl) {
  std::string out;
  std::int64_t count = 0;
  for (std::size_t from = 0; from < acl.size(); ++count) {
    const std::size_t end = std::min(acl.find(',', from), acl.size());
    const std::string one = acl.substr(from, end - from);
    const auto first = one.find(':');
    const auto last = one.rfind(':');
    if (first == last) throw std::invalid_argument("no ACL: " + one);
    std::int64_t rights = 0;
    for (const char letter : one.substr(last + 1)) {
      rights |= std::int64_t{1} << kRights.find(letter);
    }
    out +=
        int32(rights) + text(one.substr(0, first)) + text(one.substr(first + 1, last - first - 1));
    from = end + 1;
  }
  return int32(count) + out;
}

// What the server gives a session as its password: bytes of java.util.Random, seeded by its id.
// It is no secret; see ZooKeeperServer.generatePasswd.
std::string password_of(std::int64_t session) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << 48) - 1;
  constexpr std::uint64_t kFactor = 0x5DEECE66D;
  std::uint64_t seed = ((static_cast<std::uint64_t>(session) ^ 0xB3415C00) ^ kFactor) & kMask;
  std::string out;
  while (out.size() < 16) {
    seed = (seed * kFactor + 0xB) & kMask;
    for (std::uint64_t word = seed >> 16, i = 0; i < 4; ++i, word >>= 8) {
      out += static_cast<char>(word & 0xff);
    }
  }
  return out;
}

Fd connected(int port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

}  // namespace

class ZooKeeperClient::Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::int32_t int32() { return static_cast<std::int32_t>(number(4)); }
  std::int64_t int64() { return static_cast<std::int64_t>(number(8)); }
  std::string text() {
    const std::int32_t size = int32();
    return size > 0 ? take(static_cast<std::size_t>(size)) : "";
  }
  ZnodeStat stat() {
    ZnodeStat out;
    out.created_zxid = int64();
    out.modified_zxid = int64();
    out.created_ms = int64();
    out.modified_ms = int64();
    out.version = int32();
    out.child_version = int32();
    out.acl_version = int32();
    out.session = int64();
    out.data_length = int32();
    out.children = int32();
    out.children_zxid = int64();
    return out;
  }

 private:
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    for (const char byte : take(size)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }
  std::string take(std::size_t size) {
    if (bytes_.size() - at_ < size) throw std::runtime_error("zookeeper: a reply is too short");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

ZooKeeperClient::ZooKeeperClient(int port) : ZooKeeperClient(port, 0, std::string(16, '\0')) {}

ZooKeeperClient::ZooKeeperClient(int port, std::int64_t session, const std::string& password)
    : fd_(connected(port)) {
  if (!fd_) throw std::runtime_error("zookeeper: cannot connect to port " + std::to_string(port));
  send(int32(0) + int64(0) + int32(kTimeoutMs) + int64(session) + text(password) + '\0');
  Reader reply(receive());
  reply.int32();
  const bool granted = reply.int32() > 0;
  session_ = reply.int64();
  if (!granted) {
    session_ = 0;
    throw std::runtime_error(kExpired);
  }
}

ZooKeeperClient::~ZooKeeperClient() {
  if (session_ == 0) return;
  try {
    call(kClose, "", "close");
  } catch (const std::runtime_error&) {
    // The server is gone; so will be the session.
  }
}

// Whose it is connects again as soon as we take it away, and may be faster.
void ZooKeeperClient::end_session(int port, std::int64_t session) {
  for (const Deadline deadline = after(Clock::now(), kPatience); Clock::now() < deadline;) {
    try {
      ZooKeeperClient(port, session, password_of(session));
    } catch (const std::runtime_error& error) {
      if (error.what() == kExpired) return;
    }
  }
  throw std::runtime_error("zookeeper: a session does not end");
}

void ZooKeeperClient::send(const std::string& body) {
  const std::string packet = text(body);
  for (std::size_t sent = 0; sent < packet.size();) {
    const ssize_t wrote =
        ::send(fd_.get(), packet.data() + sent, packet.size() - sent, MSG_NOSIGNAL);
    if (wrote < 0) throw std::runtime_error("zookeeper: ConnectionLoss");
    sent += static_cast<std::size_t>(wrote);
  }
}

std::string ZooKeeperClient::receive() {
  const Deadline deadline = after(Clock::now(), kPatience);
  std::string bytes;
  std::size_t wanted = 4;
  bool sized = false;
  while (bytes.size() < wanted) {
    std::array<char, 65'536> buffer;
    if (!util::wait_readable(fd_.get(), deadline)) throw std::runtime_error("zookeeper: silent");
    const ssize_t got =
        ::read(fd_.get(), buffer.data(), std::min(buffer.size(), wanted - bytes.size()));
    if (got <= 0) throw std::runtime_error("zookeeper: ConnectionLoss");
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
    if (!sized && bytes.size() == 4) {
      wanted = static_cast<std::size_t>(Reader(bytes).int32());
      bytes.clear();
      sized = true;
    }
  }
  return bytes;
}

ZooKeeperClient::Reader ZooKeeperClient::call(int type, const std::string& body,
                                              const std::string& what) {
  const int xid = type == kAuth ? kAuthXid : ++calls_;
  send(int32(xid) + int32(type) + body);
  for (;;) {
    Reader reply(receive());
    if (reply.int32() != xid) continue;
    reply.int64();
    const int error = reply.int32();
    if (error != 0) throw std::runtime_error(what + ": " + error_name(error));
    return reply;
  }
}

void ZooKeeperClient::add_digest(const std::string& user_and_password) {
  call(kAuth, int32(0) + text("digest") + text(user_and_password), "auth");
}

std::string ZooKeeperClient::create(const std::string& path, const std::string& data, Znode kind,
                                    const std::string& acl) {
  return call(kind == Znode::container ? kCreateContainer : kCreate,
              text(path) + text(data) + acl_vector(acl) + int32(static_cast<int>(kind)),
              "create " + path)
      .text();
}

void ZooKeeperClient::create_all(const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    if (const std::string part = path.substr(0, end); !exists(part)) create(part);
  }
}

void ZooKeeperClient::remove(const std::string& path) {
  call(kDelete, text(path) + int32(-1), "delete " + path);
}

void ZooKeeperClient::remove_all(const std::string& path) {
  if (!exists(path)) return;
  for (const std::string& child : children(path)) remove_all(path + '/' + child);
  remove(path);
}

void ZooKeeperClient::set(const std::string& path, const std::string& data) {
  call(kSetData, text(path) + text(data) + int32(-1), "set " + path);
}

void ZooKeeperClient::set_acl(const std::string& path, const std::string& acl) {
  call(kSetAcl, text(path) + acl_vector(acl) + int32(-1), "setacl " + path);
}

std::optional<ZnodeStat> ZooKeeperClient::stat(const std::string& path) {
  try {
    return call(kExists, text(path) + '\0', "stat").stat();
  } catch (const std::runtime_error& error) {
    if (std::string(error.what()) == "stat: " + error_name(kNoNode)) return std::nullopt;
    throw;
  }
}

std::vector<std::string> ZooKeeperClient::children(const std::string& path) {
  if (!exists(path)) return {};
  Reader reply = call(kGetChildren, text(path) + '\0', "ls " + path);
  std::vector<std::string> out;
  for (std::int32_t left = reply.int32(); left > 0; --left) out.push_back(reply.text());
  std::sort(out.begin(), out.end());
  return out;
}

std::string ZooKeeperClient::data(const std::string& path) {
  return call(kGetData, text(path) + '\0', "get " + path).text();
}

std::string ZooKeeperClient::acl(const std::string& path) {
  Reader reply = call(kGetAcl, text(path), "getacl " + path);
  std::string out;
  for (std::int32_t left = reply.int32(); left > 0; --left) {
    const std::int32_t rights = reply.int32();
    const std::string scheme = reply.text();
    out += (out.empty() ? "" : ",") + scheme + ':' + reply.text() + ':';
    for (const char letter : std::string_view("cdrwa")) {
      if (rights >> kRights.find(letter) & 1) out += letter;
    }
  }
  return out;
}

std::string zookeeper_ask(int port, const std::string& word) {
  const Deadline deadline = after(Clock::now(), kAnswerTime);
  const Fd fd = connected(port);
  if (!fd || ::send(fd.get(), word.data(), word.size(), MSG_NOSIGNAL) < 0) return {};
  std::string text;
  std::array<char, 4'096> buffer;
  while (util::wait_readable(fd.get(), deadline)) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0) return {};
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace dlock::test
