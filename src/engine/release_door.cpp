// Who may ask.  Whoever has the token may release the lock through the service, too.  Here it has
//   to be of the keeper's user, or root, besides: nobody else can make the keeper wait for the rest
//   of a question.  Who is asked has to be, too: the name of the socket is no secret, and anybody
//   may listen there once the keeper has ended.

#include "engine/release_door.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "util/local_socket.hpp"
#include "util/poll.hpp"

namespace dlock {
namespace {

constexpr int kMostAsking = 8;
constexpr std::size_t kShown = 12;  // of a token, to everybody
constexpr Millis kQuestion{200};    // whoever has connected has sent it by then

struct DoorAnswer {
  bool released = false;
  Errc code = Errc::unreachable;
  std::array<char, 1'024> message{};  // a text that ends with a 0
};

// No key is longer than 255 bytes.
constexpr std::size_t kLongestQuestion = 512;

std::string question_about(const std::string& key, const std::string& token) {
  return token + ' ' + key;
}

std::string name_of(const std::string& token) { return "keeper-" + token.substr(0, kShown); }

}  // namespace

ReleaseDoor::ReleaseDoor(std::string key, std::string token)
    : key_(std::move(key)),
      token_(std::move(token)),
      listener_(util::listen_locally(name_of(token_), kMostAsking)) {}

Fd ReleaseDoor::asked() {
  Fd who(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!who && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    listener_.reset();  // no descriptor is left: the service will tell
  }
  if (!who || !util::is_of_our_user_or_root(who.get())) return {};
  std::array<char, kLongestQuestion> question{};
  if (!util::wait_readable(who.get(), after(Clock::now(), kQuestion))) return {};
  const ssize_t got = util::receive_datagram(who.get(), question.data(), question.size());
  const bool is_meant =
      got > 0 && std::string_view(question.data(), static_cast<std::size_t>(got)) ==
                     question_about(key_, token_);
  return is_meant ? std::move(who) : Fd();
}

void ReleaseDoor::answer(const Fd& who_asked, const Result<void>& outcome) {
  DoorAnswer answer{.released = outcome.has_value()};
  if (!outcome) {
    answer.code = outcome.error().code;
    outcome.error().message.copy(answer.message.data(), answer.message.size() - 1);
  }
  (void)util::send_datagram(who_asked.get(), &answer, sizeof(answer));
}

std::optional<Result<void>> ask_keeper(const std::string& key, const std::string& token,
                                       Deadline deadline) {
  const Fd keeper = util::connect_locally(name_of(token), deadline);
  const std::string question = question_about(key, token);
  if (!keeper || !util::is_of_our_user_or_root(keeper.get()) ||
      !util::send_datagram(keeper.get(), question.data(), question.size())) {
    return std::nullopt;
  }
  DoorAnswer answer;
  if (!util::wait_readable(keeper.get(), deadline)) {
    return Error{Errc::unreachable, "the process that keeps the lock has not answered in time"};
  }
  const ssize_t got = util::receive_datagram(keeper.get(), &answer, sizeof(answer));
  if (got != static_cast<ssize_t>(sizeof(answer))) return std::nullopt;
  if (answer.released) return Result<void>();
  answer.message.back() = '\0';
  return Error{answer.code, answer.message.data()};
}

}  // namespace dlock
