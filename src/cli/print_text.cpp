#include "cli/print_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "engine/exit_status.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"

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

}  // namespace

std::string cell_text(const Cell& cell) {
  if (const bool* truth = std::get_if<bool>(&cell)) return *truth ? "yes" : "no";
  return std::get<std::string>(cell);
}

std::string print_text(const Table& table) {
  std::vector<std::vector<std::string>> lines{{table.headings.begin(), table.headings.end()}};
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (const Cell& cell : row) line.push_back(cell_text(cell));
  }
  std::vector<std::size_t> widths(table.headings.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (i + 1 < line.size()) out.append(widths[i] + 2 - line[i].size(), ' ');
    }
    out += '\n';
  }
  return out;
}

std::string wrap(std::string_view text, std::size_t indent) {
  std::string out;
  for (const std::string_view line : lines_of(text)) {
    std::size_t column = 0;
    std::size_t at = 0;
    while (at < line.size()) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      const std::string_view word = line.substr(at, end - at);
      if (column > 0 && column + 1 + word.size() > kWidth) {
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
                    std::size_t column) {
  const std::string head = std::string(indent, ' ') + std::string(term);
  const std::string body = wrap(text, column);
  if (head.size() + 2 > column) return head + '\n' + body;
  return head + body.substr(head.size());
}

int write_stdout(std::string_view text) {
  if (util::write_all(STDOUT_FILENO, text)) return 0;
  util::log(util::Level::error, std::string("standard output: ") + std::strerror(errno));
  return exit_status::kNo;
}

}  // namespace dlock::cli
