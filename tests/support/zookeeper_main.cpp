// dlock-zk: a ZooKeeperClient for shell scripts.
//
//     dlock-zk PORT [--auth USER:PASSWORD] COMMAND...
//
//     ls PATH                  children, sorted, a line each
//     get PATH, acl PATH       what it holds
//     stat PATH                its czxid, owning session, version and number of children in a line;
//                              status 1 if there is none
//     create PATH [DATA]       persistent, with all the nodes above it; DATA "-": from stdin
//     container PATH           the same, as a container
//     hold PATH [DATA]         an ephemeral sequential node: prints its path, and stays
//     fill PATH COUNT          so many ephemeral sequential nodes, of one session, and stays
//     rm PATH, rmr PATH        deletes it; with all below it
//     set PATH DATA, set-acl PATH ACL
//     expire SESSION           ends it as if it had expired
//     ask WORD                 a four-letter word
#include <signal.h>
#include <sys/prctl.h>

#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>

#include "support/zookeeper_client.hpp"

namespace dlock::test {
namespace {

using Words = std::span<char* const>;

std::string word(Words words, std::size_t i) {
  if (i >= words.size()) throw std::invalid_argument("a word is missing; see zookeeper_main.cpp");
  return words[i];
}

std::string data_word(Words words, std::size_t i) {
  std::string data = i < words.size() ? words[i] : "";
  if (data == "-") data.assign(std::istreambuf_iterator<char>(std::cin), {});
  return data;
}

void create_parents(ZooKeeperClient& client, const std::string& path) {
  if (const auto slash = path.rfind('/'); slash > 0) client.create_all(path.substr(0, slash));
}

[[noreturn]] void stay() {
  std::cout.flush();
  for (;;) ::pause();
}

int run(ZooKeeperClient& client, Words words) {
  const std::string command = word(words, 0);
  const std::string path = word(words, 1);
  if (command == "ls") {
    for (const std::string& child : client.children(path)) std::cout << child << '\n';
  } else if (command == "get") {
    std::cout << client.data(path);
  } else if (command == "acl") {
    std::cout << client.acl(path) << '\n';
  } else if (command == "stat") {
    const auto stat = client.stat(path);
    if (!stat) return 1;
    std::cout << stat->created_zxid << ' ' << stat->session << ' ' << stat->version << ' '
              << stat->children << '\n';
  } else if (command == "create" || command == "container") {
    create_parents(client, path);
    client.create(path, data_word(words, 2),
                  command == "create" ? Znode::persistent : Znode::container);
  } else if (command == "hold") {
    create_parents(client, path);
    std::cout << client.create(path, data_word(words, 2), Znode::ephemeral_sequential) << '\n';
    stay();
  } else if (command == "fill") {
    create_parents(client, path);
    for (long left = std::stol(word(words, 2)); left > 0; --left) {
      client.create(path, {}, Znode::ephemeral_sequential);
    }
    std::cout << "full\n";
    stay();
  } else if (command == "rm") {
    client.remove(path);
  } else if (command == "rmr") {
    client.remove_all(path);
  } else if (command == "set") {
    client.set(path, data_word(words, 2));
  } else if (command == "set-acl") {
    client.set_acl(path, word(words, 2));
  } else {
    throw std::invalid_argument("no command: " + command);
  }
  return 0;
}

int ask(int port, const std::string& text) {
  const std::string answer = zookeeper_ask(port, text);
  std::cout << answer;
  return answer.empty() ? 1 : 0;
}

int run(Words words) {
  const int port = std::stoi(word(words, 1));
  if (word(words, 2) == "ask") return ask(port, word(words, 3));
  if (word(words, 2) == "expire") {
    ZooKeeperClient::end_session(port, std::stoll(word(words, 3)));
    return 0;
  }
  ZooKeeperClient client(port);
  if (word(words, 2) != "--auth") return run(client, words.subspan(2));
  client.add_digest(word(words, 3));
  return run(client, words.subspan(4));
}

}  // namespace
}  // namespace dlock::test

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    return dlock::test::run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::cerr << "dlock-zk: " << error.what() << '\n';
    return 1;
  }
}
