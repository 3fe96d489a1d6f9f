#include "cli/print_text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <vector>

#include "engine/exit_status.hpp"
#include "util/duration.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"
#include "util/text.hpp"
#include "util/width.hpp"

namespace dlock::cli {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (;;) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

constexpr std::size_t kGap = 2;        // between columns
constexpr std::size_t kNarrowest = 4;  // what a column is never cut below

struct ToText {
  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(Never) const { return "never"; }
  std::string operator()(Absent) const { return "-"; }
  std::string operator()(bool truth) const { return truth ? "yes" : "no"; }
  std::string operator()(std::uint64_t number) const { return std::to_string(number); }
  std::string operator()(Millis duration) const { return util::format_duration(duration); }
  std::string operator()(const std::string& text) const { return util::printable(text); }
  std::string operator()(const Lines& lines) const {
    std::string out;
    for (const std::string& line : lines) out += (out.empty() ? "" : "; ") + util::printable(line);
    return out.empty() ? "-" : out;
  }
};

std::vector<std::vector<std::string>> texts_of(const Table& table) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Table::Head& head : table.heads) lines[0].emplace_back(head.heading);
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (const Cell& cell : row) line.push_back(cell_text(cell));
  }
  return lines;
}

// With the gaps between them.
std::size_t sum_of(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

// A table that is too wide is cut in the columns with the largest `gives`, the widest of these
// first.
std::vector<std::size_t> column_widths(const Table& table,
                                       const std::vector<std::vector<std::string>>& lines,
                                       std::size_t most) {
  std::vector<std::size_t> widths(table.heads.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], util::display_width(line[i]));
    }
  }
  while (!widths.empty() && sum_of(widths) > most) {
    std::pair<unsigned, std::size_t> most_given{0, 0};
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::pair gives{table.heads[i].gives, widths[i]};
      if (gives.first == 0 || widths[i] <= kNarrowest || gives <= most_given) continue;
      most_given = gives;
      widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
  }
  return widths;
}

}  // namespace

std::string cell_text(const Cell& cell) { return std::visit(ToText(), cell); }

std::size_t width_of(const Table& table) {
  return sum_of(column_widths(table, texts_of(table), kAnyWidth));
}

std::string print_text(const Table& table, std::size_t width) {
  const auto lines = texts_of(table);
  const std::vector<std::size_t> widths = column_widths(table, lines, width);
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string text = util::cut_to_width(line[i], widths[i]);
      const std::string room(widths[i] - util::display_width(text), ' ');
      const bool is_last = i + 1 == line.size();
      if (table.heads[i].right && width != kAnyWidth) {
        out += room + text;
      } else {
        out += text + (is_last ? "" : room);
      }
      if (!is_last) out.append(kGap, ' ');
    }
    out += '\n';
  }
  return out;
}

std::size_t terminal_width(int fd) {
  winsize size{};
  if (isatty(fd) == 0) return kAnyWidth;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kWidth;
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  for (const std::string_view line : lines_of(text)) {
    std::size_t column = 0;
    std::size_t at = 0;
    while (at < line.size()) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      const std::string_view word = line.substr(at, end - at);
      if (column > 0 && column + 1 + word.size() > width) {
        out += '\n';
        column = 0;
      }
      if (column == 0) {
        out.append(indent, ' ');
        column = indent;
      } else {
        out += ' ';
        ++column;
      }
      out += word;
      column += word.size();
      at = end + 1;
    }
    out += '\n';
  }
  return out;
}

std::string hanging(std::string_view term, std::string_view text, std::size_t indent,
                    std::size_t column, std::size_t width) {
  std::string head = std::string(indent, ' ') + std::string(term);
  if (text.empty()) return head + '\n';
  const std::size_t start = std::max(column, head.size() + 2);
  // Dashes in front stand for the part of the term that reaches into the column.
  const std::string body =
      wrap(std::string(start - column, '-') + std::string(text), column, width);
  head.resize(start, ' ');
  return head + body.substr(start);
}

int write_stdout(std::string_view text) {
  if (util::write_all(STDOUT_FILENO, text)) return 0;
  util::log(util::Level::error, std::string("standard output: ") + std::strerror(errno));
  return exit_status::kNo;
}

}  // namespace dlock::cli
