#include "support/proxy/control.hpp"

#include <map>
#include <sstream>

namespace dlock::test {
namespace {

using Words = std::istringstream;
using Command = std::string (*)(Proxy&, Words&);
const std::string kOk = "ok";

long number(Words& words) {
  long value = -1;
  if (!(words >> value) || value < 0) words.setstate(std::ios::badbit);
  return value;
}

std::string lose_reply_to(Proxy& proxy, Words& words) {
  std::string text;
  std::string count = "1";
  long skip = 0;
  words >> text;
  if (words >> count) words >> skip;
  if (text.empty()) return "error: lose-reply-to what?";
  proxy.lose_reply_to(text, count == "always" ? -1 : std::stol(count), skip);
  return kOk;
}

template <void (Proxy::*function)()>
std::string plain(Proxy& proxy, Words&) {
  (proxy.*function)();
  return kOk;
}

template <auto function>
std::string counter(Proxy& proxy, Words&) {
  return std::to_string((proxy.*function)());
}

template <typename Number, void (Proxy::*function)(Number)>
std::string with_number(Proxy& proxy, Words& words) {
  const long value = number(words);
  if (words.bad()) return "error: a number is missing";
  (proxy.*function)(Number(value));
  return kOk;
}

std::string cut(Proxy& proxy, Words& words) {
  std::string how;
  words >> how;
  proxy.cut(how == "fin" ? Cut::fin : Cut::rst);
  return kOk;
}

}  // namespace

std::string control(Proxy& proxy, const std::string& line) {
  static const std::map<std::string, Command> commands{
      {"blackhole", plain<&Proxy::blackhole>},
      {"bytes", counter<&Proxy::request_bytes>},
      {"chunk", with_number<std::size_t, &Proxy::chunk>},
      {"connections", counter<&Proxy::connections>},
      {"cut", cut},
      {"delay", with_number<Millis, &Proxy::delay_replies>},
      {"delay-requests", with_number<Millis, &Proxy::delay_requests>},
      {"drop", plain<&Proxy::drop>},
      {"hold", plain<&Proxy::hold>},
      {"lose-reply-to", lose_reply_to},
      {"lost", counter<&Proxy::lost_replies>},
      {"open", counter<&Proxy::open_connections>},
      {"pass", plain<&Proxy::pass>},
      {"refuse", plain<&Proxy::refuse>},
      {"release", plain<&Proxy::release>},
  };
  Words words(line);
  std::string name;
  words >> name;
  const auto found = commands.find(name);
  return found != commands.end() ? found->second(proxy, words) : "error: no command: " + name;
}

}  // namespace dlock::test
