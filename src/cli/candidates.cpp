#include "cli/candidates.hpp"

#include <string_view>

#include "cli/layers.hpp"
#include "cli/lock_columns.hpp"
#include "cli/lock_service.hpp"
#include "util/text.hpp"

namespace dlock::cli {
namespace {

class Candidates {
 public:
  Candidates(const TypedWords& typed, std::span<const BackendEntry> backends)
      : typed_(typed), backends_(backends), head_(typed.head), text_(typed.text) {}

  std::string compose();

 private:
  void offer(std::string_view value, std::string_view description) {
    const bool fits = !value.empty() && value.starts_with(text_);
    if (!fits || util::printable(value) != value) return;
    out_ += head_ + std::string(value) + '\t' + util::printable(description) + '\n';
  }

  void offer_commands();
  void offer_options(const Command& command);
  void offer_operands(const Command& command);
  void offer_values(const Flag& flag);
  void offer_backends();
  void offer_schemas();
  void offer_columns();
  void offer_keys(bool are_values);

  bool is_ruled_out(const Flag& flag) const;
  Invocation as_list() const;

  const TypedWords& typed_;
  std::span<const BackendEntry> backends_;
  std::string head_;
  std::string text_;
  std::string out_;
};

std::string Candidates::compose() {
  const Command* command = typed_.said.command;
  if (typed_.command_at != 0) {
    out_ = "\tcommand " + std::to_string(typed_.command_at) + '\n';
  } else if (typed_.asked != nullptr) {
    offer_values(*typed_.asked);
  } else if (command != nullptr && !typed_.has_mark && text_.starts_with('-')) {
    offer_options(*command);
  } else if (command != nullptr) {
    offer_operands(*command);
  } else if (typed_.is_command) {
    offer_commands();
    if (text_.starts_with('-')) offer("--help", "show an overview");
    if (text_.starts_with('-')) offer("--version", "show the version");
  }
  return out_;
}

void Candidates::offer_commands() {
  for (const Command& command : commands()) {
    if (!command.hidden) offer(command.name, command.brief);
  }
}

// Whether dlock would refuse it beside what is typed already.
bool Candidates::is_ruled_out(const Flag& flag) const {
  return (typed_.said.has(flag.name) && !flag.repeats()) || typed_.said.has(flag.rival);
}

void Candidates::offer_options(const Command& command) {
  for (const Flag& flag : flags()) {
    if (!flag.is_of(command) || is_ruled_out(flag)) continue;
    const std::string letter{'-', flag.letter};
    if (text_ == letter) offer(letter, flag.brief);
    const bool is_meant = !flag.hidden || text_.size() > 2;
    if (is_meant) offer("--" + std::string(flag.name), flag.brief);
  }
  if (command.wraps && !typed_.said.has(command.alone)) offer("--", "the command follows");
}

void Candidates::offer_operands(const Command& command) {
  if (command.operands.empty() && !typed_.has_mark) {
    if (text_.empty()) offer_options(command);
  } else if (typed_.said.operands.size() < command.most_operands()) {
    if (command.id == kHelp) offer_commands();
    if (command.operands.starts_with("KEY")) offer_keys(false);
  }
}

void Candidates::offer_values(const Flag& flag) {
  for (const std::string_view choice : flag.choices) offer(choice, "");
  switch (flag.completes) {
    case Completes::nothing:
      break;
    case Completes::files:
      out_ = "\tfiles\n";
      break;
    case Completes::backends:
      offer_backends();
      break;
    case Completes::schemas:
      offer_schemas();
      break;
    case Completes::columns:
      offer_columns();
      break;
    case Completes::keys:
      offer_keys(true);
      break;
  }
}

// The first one is the one to choose of its family: mysql-row and the like are for special cases.
bool is_offered(const BackendEntry& entry) {
  return entry.open != nullptr && !entry.name.starts_with("mysql-") &&
         !entry.name.starts_with("postgres-");
}

void Candidates::offer_backends() {
  const auto config = find_config(given_settings(as_list()));
  if (config && config.value()) {
    for (const ConfigProfile& profile : config.value()->profiles) offer(profile.name, "profile");
  }
  for (const BackendEntry& entry : backends_) {
    if (is_offered(entry)) offer(entry.name, entry.brief);
  }
}

void Candidates::offer_schemas() {
  for (const BackendEntry& entry : backends_) {
    if (is_offered(entry) && entry.schema != nullptr) offer(entry.name, entry.brief);
  }
}

// The last one of a list.
void Candidates::offer_columns() {
  const auto begin = text_.rfind(',') + 1;
  head_ += text_.substr(0, begin);
  text_.erase(0, begin);
  for (const std::string_view name : column_names()) offer(name, "");
}

// The `dlock list` that looks where the command being typed would.
Invocation Candidates::as_list() const {
  Invocation list{.command = find_command("list")};
  for (const Invocation::Given& given : typed_.said.flags) {
    if (given.flag->group == Group::backend) list.flags.push_back(given);
  }
  return list;
}

void Candidates::offer_keys(bool are_values) {
  const LockService service(as_list(), backends_);
  const auto backend = service.open();
  if (!backend) return;
  auto found = backend.value()->list_reachable(text_, service.patience());
  if (!found) return;
  for (const LockInfo& lock : found->locks) {
    // Such an operand would be an option.
    if (lock.key.starts_with('-') && !are_values && !typed_.has_mark) continue;
    const Owner owner = lock.holders.empty() ? Owner() : lock.holders.front().owner;
    offer(lock.key, owner.host.empty() ? "" : "held by " + owner.user + " on " + owner.host);
  }
}

}  // namespace

std::string candidates(const TypedWords& typed, std::span<const BackendEntry> backends) {
  return Candidates(typed, backends).compose();
}

}  // namespace dlock::cli
