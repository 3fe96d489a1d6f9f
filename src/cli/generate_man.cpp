// The page consists of the tables and the prose of man_prose.hpp.
#include <algorithm>
#include <string>

#include "cli/cmd_backends.hpp"
#include "cli/flags.hpp"
#include "cli/generate.hpp"
#include "cli/lock_columns.hpp"
#include "cli/man_prose.hpp"
#include "cli/mark_columns.hpp"
#include "cli/print_text.hpp"
#include "cli/version.hpp"
#include "engine/exit_status.hpp"
#include "engine/run.hpp"

namespace dlock::cli {
namespace {

bool is_flag_char(char c) { return (c >= 'a' && c <= 'z') || c == '-'; }

// Plain text as roff; `--flags` in bold if `bold_flags`.
std::string roff(std::string_view text, bool bold_flags) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (bold_flags && text.substr(i).starts_with("--") && i + 2 < text.size() &&
        text[i + 2] >= 'a' && text[i + 2] <= 'z') {
      std::size_t end = i;
      while (end < text.size() && is_flag_char(text[end])) ++end;
      out += "\\fB" + roff(text.substr(i, end - i), false) + "\\fR";
      i = end - 1;
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '~') {
      out += "\\(ti";
    } else if (c == '^') {
      out += "\\(ha";
    } else {
      out += c;
    }
  }
  return out;
}

// Sentences on lines of their own keep the diffs of the committed page small.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto blank = text.find("\n\n");
    std::string one = roff(text.substr(0, blank), true);
    for (std::size_t at = 0; (at = one.find(". ", at)) != std::string::npos;) {
      one.replace(at, 2, ".\n");
    }
    out += (out.empty() ? "" : ".PP\n") + one + '\n';
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 2);
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view mark, const std::string& with) {
  std::string out(text);
  return out.replace(out.find(mark), mark.size(), with);
}

std::string bold(std::string_view text) { return "\\fB" + roff(text, false) + "\\fR"; }

// Words as they stand in a synopsis: --flags and lower case are typed as they are, CAPITALS are
// filled in.
std::string synopsis_words(std::string_view text) {
  std::string out;
  std::string word;
  const auto flush = [&] {
    if (word.empty()) return;
    const bool filled_in = word[0] >= 'A' && word[0] <= 'Z';
    out += (filled_in ? "\\fI" : "\\fB") + roff(word, false) + "\\fR";
    word.clear();
  };
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-') {
      word += c;
    } else {
      flush();
      out += c == '.' ? std::string("\\&.") : std::string(1, c);
    }
  }
  flush();
  return out;
}

std::string synopsis() {
  std::string out = ".SH SYNOPSIS\n.nf\n";
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    out += "\\fBdlock " + std::string(command.name) + "\\fR";
    if (!command.synopsis.empty()) out += ' ' + synopsis_words(command.synopsis);
    out += '\n';
  }
  return out + ".fi\n";
}

// Help is about one command, so its headings need not name it.  The page is about all.
std::string_view man_heading(Group group) {
  switch (group) {
    case Group::once:
      return "Options of once";
    case Group::grant:
      return "Options of acquire, renew and release";
    case Group::look:
      return "Options of list, show and force-release";
    case Group::id:
      return "Options of id";
    case Group::backends:
      return "Options of backends";
    default:
      return heading(group);
  }
}

// The row of this name, or an empty one.
template <class Rows>
typename Rows::value_type text_of(const Rows& rows, std::string_view name) {
  const auto* found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
  return found == rows.end() ? typename Rows::value_type{} : *found;
}

std::string command_section() {
  std::string out = ".SH COMMANDS\n";
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    out += ".SS \"dlock " + std::string(command.name) + "\"\n" +
           paragraphs(text_of(man::kCommandTexts, command.name).text);
  }
  return out;
}

std::string option(const Flag& flag) {
  std::string out = ".TP\n";
  if (flag.letter != 0) out += bold(std::string("-") + flag.letter) + ", ";
  out += bold("--" + std::string(flag.name));
  if (flag.takes_value()) out += "\\fR \\fI" + roff(flag.value, false) + "\\fR";
  if (!flag.alone.empty()) out += "[=\\fI" + roff(flag.value, false) + "\\fR]";
  const man::OptionText more = text_of(man::kOptionTexts, flag.name);
  out += '\n' + paragraphs(sentence(flag.brief) + ' ' + std::string(more.text));
  if (flag.repeats() && flag.takes_value()) out += "Can be repeated.\n";
  if (!flag.rival.empty())
    out += "Not together with " + bold("--" + std::string(flag.rival)) + ".\n";
  if (!flag.fallback.empty()) out += "The default: " + roff(flag.fallback, true) + ".\n";
  if (!more.section.empty()) out += "See\n.B \"" + std::string(more.section) + "\"\nbelow.\n";
  return out;
}

std::string option_section() {
  std::string out =
      ".SH OPTIONS\n"
      "A\n.I DURATION\n"
      "is a number of seconds, with a fraction if need be, or has units: 0.5, 90s, 250ms, 1h30m, "
      "2d.\n"
      "Of an option that is given twice the last one counts, unless it can be repeated.\n"
      "An option without a value can be taken back with\n.BR =no ,\nas in\n"
      ".BR \\-\\-shared=no .\n";
  for (const Group group : kGroups) {
    out += ".SS " + std::string(man_heading(group)) + '\n';
    for (const Flag& flag : flags()) {
      if (flag.group == group) out += option(flag);
    }
  }
  return out;
}

std::string json_fields(const LockColumn& it) {
  if (it.column.field.empty()) return "";
  std::string out;
  for (const auto& [part, where] :
       {std::pair{kOfLock, "locks[]."}, std::pair{kOfHolder, "locks[].holders[]."},
        std::pair{kOfWaiter, "locks[].waiters[]."}}) {
    if ((it.parts & part) == 0) continue;
    out += (out.empty() ? "" : ", ") + roff(where + std::string(it.column.field), false);
  }
  return out;
}

std::string column_section() {
  std::string columns;
  for (const LockColumn& it : lock_columns()) {
    const auto name = it.column.name.empty() ? it.column.field : it.column.name;
    columns += ".TP\n" + bold(name) + " (" + roff(it.column.heading, false) + ")\n" +
               roff(it.column.brief, true) + '\n';
    if (const std::string json = json_fields(it); !json.empty()) {
      columns += ".br\nJSON: " + json + '\n';
    }
  }
  return replaced(man::kColumns, "%COLUMNS%", columns);
}

std::string once_section() {
  std::string fields;
  for (const Column<Mark>& column : mark_columns()) {
    fields += ".TP\n" + bold(column.field) + " (" + roff(column.heading, false) + ")\n" +
              roff(column.brief, true) + '\n';
  }
  return replaced(man::kOnce, "%MARKS%", fields);
}

std::string choosing_section(std::span<const BackendEntry> backends) {
  std::string urls;
  for (const BackendEntry& entry : backends)
    urls += roff(entry.forms.front().example, false) + '\n';
  return replaced(man::kChoosing, "%URLS%", urls);
}

std::string backend_section(std::span<const BackendEntry> backends) {
  const Table table = backend_table(backends, false);
  std::string out(man::kBackendsHead);
  // One space between columns, and less space before them, or the table would be wider than a
  // terminal.
  std::string rest;
  std::string bold_rest;
  for (std::size_t i = 1; i < table.heads.size(); ++i) {
    rest += "1 l";
    bold_rest += "1 lB";
  }
  out += "lB" + bold_rest + "\nl" + rest + ".\n";
  for (std::size_t i = 0; i < table.heads.size(); ++i) {
    out += (i == 0 ? "" : "\t") + std::string(table.heads[i].heading);
  }
  out += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += (i == 0 ? "" : "\t") + roff(cell_text(row[i]), false);
    }
    out += '\n';
  }
  out += ".TE\n.in\n";
  for (const BackendEntry& entry : backends) {
    out += ".TP\n" + bold(entry.name);
    for (const std::string_view alias : entry.aliases) {
      if (!alias.empty()) out += " (or " + bold(alias) + ')';
    }
    out += '\n' + roff(entry.brief, false) + '\n';
  }
  return out;
}

// "\fB--a\fR, \fB--b\fR and \fB--c\fR" of the flags that `wanted` picks.
template <class Wanted>
std::string enumerated(Wanted wanted) {
  std::vector<std::string> names;
  for (const Flag& flag : flags()) {
    if (wanted(flag)) names.push_back(bold("--" + std::string(flag.name)));
  }
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

std::string config_section() {
  return replaced(man::kConfig, "%NOT_IN_CONFIG%", enumerated([](const Flag& flag) {
                    return !flag.in_config() && flag.name != "help";
                  }));
}

std::string environment_section() {
  std::string variables;
  for (const Flag& flag : flags()) {
    if (!flag.in_environment()) continue;
    std::string name = variable_of(flag);
    name.append(26 - std::min<std::size_t>(name.size(), 25), ' ');
    variables += name + roff("--" + std::string(flag.name), false) + '\n';
  }
  return replaced(
      replaced(man::kEnvironment, "%VARIABLES%", variables), "%NO_VARIABLE%",
      enumerated([](const Flag& flag) { return !flag.in_environment() && flag.name != "help"; }));
}

std::string status_section() {
  std::string out = ".SH EXIT STATUS\n";
  for (const exit_status::Row& row : exit_status::kTable) {
    out += ".TP\n" + bold(row.status) + '\n' + roff(row.meaning, true) + '\n';
  }
  return out +
         ".PP\nThe other commands use the same numbers, and 1 for a plain no or for output\n"
         "that could not be written.\n";
}

}  // namespace

std::string generate_man(std::span<const BackendEntry> backends) {
  std::string out =
      "'\\\" t\n"
      ".\\\" Written by \"dlock generate man\"; do not edit.\n"
      ".TH DLOCK 1 \"\" \"dlock " +
      std::string(kVersionText) +
      "\" \"User Commands\"\n"
      ".SH NAME\n"
      "dlock \\- run a command while holding a lock, on one machine or on many\n";
  out += synopsis();
  out += man::kDescription;
  out += command_section();
  out += option_section();
  out += column_section();
  out += choosing_section(backends);
  out += backend_section(backends);
  out += config_section();
  out += environment_section();
  out += status_section();
  out += man::kStatusFile;
  out += man::kSignals;
  out += replaced(man::kSeveral, "%MOST_KEYS%", std::to_string(kMostKeys));
  out += man::kNested;
  out += once_section();
  out += man::kScripts;
  out += man::kOutages;
  out += man::kNumbers;
  out += man::kFile;
  out += man::kRedis;
  out += man::kRedlock;
  out += man::kZookeeper;
  out += man::kMysql;
  out += man::kSharding;
  out += man::kCaveats;
  out += man::kExamples;
  out += man::kSeeAlso;
  return out;
}

}  // namespace dlock::cli
