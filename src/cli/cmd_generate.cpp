#include "cli/cmd_generate.hpp"

#include <array>
#include <string>
#include <utility>

#include "cli/generate.hpp"
#include "cli/print_text.hpp"
#include "cli/refusal.hpp"
#include "core/secret.hpp"

namespace dlock::cli {
namespace {

using Generator = std::string (*)(std::span<const BackendEntry> backends);

constexpr std::array<std::pair<std::string_view, Generator>, 4> kGenerators{{
    {"bash", generate_bash},
    {"fish", generate_fish},
    {"man", generate_man},
    {"zsh", generate_zsh},
}};

}  // namespace

int cmd_generate(const Invocation& invocation, std::span<const BackendEntry> backends) {
  for (const auto& [name, generator] : kGenerators) {
    if (name == invocation.operands.front()) return write_stdout(generator(backends));
  }
  refuse_usage("cannot generate " + shown_word(invocation.operands.front()) +
               ": it must be man, bash, zsh or fish");
}

}  // namespace dlock::cli
