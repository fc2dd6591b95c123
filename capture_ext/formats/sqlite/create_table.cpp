#include "formats/sqlite/create_table.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace torchtrt_viz::sqlite {
namespace {

struct Token {
  enum class Kind : unsigned char { kWord, kName, kText, kSign } kind;
  std::string text;  // without quotes

  [[nodiscard]] bool is(char sign) const { return kind == Kind::kSign && text[0] == sign; }
  [[nodiscard]] bool is(std::string_view keyword) const {
    return kind == Kind::kWord &&
           std::equal(text.begin(), text.end(), keyword.begin(), keyword.end(), [](char a, char b) {
             return std::toupper(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
           });
  }
  // Something that can name a column: SQLite takes texts in quotes for names too.
  [[nodiscard]] bool names() const { return kind != Kind::kSign; }
};

using Tokens = std::vector<Token>;

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte == '_' || byte == '$' || byte >= 0x80;
}

// Returns false where a quote or comment has no end.
bool tokenize(std::string_view sql, Tokens& out) {
  std::size_t at = 0;
  const auto starts = [&](std::string_view text) { return sql.substr(at, text.size()) == text; };
  while (at < sql.size()) {
    const char c = sql[at];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
    } else if (starts("--")) {
      at = std::min(sql.find('\n', at), sql.size());
    } else if (starts("/*")) {
      const std::size_t end = sql.find("*/", at + 2);
      if (end == std::string_view::npos) return false;
      at = end + 2;
    } else if (c == '"' || c == '`' || c == '\'' || c == '[') {
      const char close = c == '[' ? ']' : c;
      Token token{c == '\'' ? Token::Kind::kText : Token::Kind::kName, {}};
      for (++at;; ++at) {
        if (at >= sql.size()) return false;
        if (sql[at] == close) {
          if (c == '[' || at + 1 >= sql.size() || sql[at + 1] != close) break;
          ++at;  // twice inside stands for once
        }
        token.text.push_back(sql[at]);
      }
      ++at;
      out.push_back(std::move(token));
    } else if (in_word(c)) {
      const std::size_t begin = at;
      while (at < sql.size() && in_word(sql[at])) ++at;
      out.push_back({Token::Kind::kWord, std::string(sql.substr(begin, at - begin))});
    } else {
      out.push_back({Token::Kind::kSign, std::string(1, c)});
      ++at;
    }
  }
  return true;
}

constexpr std::array<std::string_view, 5> kTableConstraints = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK",
                                                               "FOREIGN"};
constexpr std::array<std::string_view, 10> kColumnConstraints = {
    "CONSTRAINT", "PRIMARY", "NOT",     "NULL",       "UNIQUE",
    "CHECK",      "DEFAULT", "COLLATE", "REFERENCES", "GENERATED"};

template <std::size_t N>
bool is_one_of(const Token& token, const std::array<std::string_view, N>& keywords) {
  return std::any_of(keywords.begin(), keywords.end(), [&](std::string_view k) { return token.is(k); });
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

// One part between commas: a column, or a constraint of the table.
class Part {
 public:
  Part(const Tokens& tokens, std::size_t begin, std::size_t end)
      : tokens_(tokens), begin_(begin), end_(end) {}

  [[nodiscard]] bool constrains() const { return is_one_of(tokens_[begin_], kTableConstraints); }

  // Adds the column to the table.
  void column(TableDefinition& table) const {
    ColumnDefinition column;
    column.name = tokens_[begin_].text;
    std::size_t at = begin_ + 1;
    for (; at < end_ && tokens_[at].names(); ++at) {
      if (is_one_of(tokens_[at], kColumnConstraints) || tokens_[at].is("AS")) break;
      column.type += (column.type.empty() ? "" : " ") + tokens_[at].text;
    }
    bool generated = false, kept = false, key = false, descending = false;
    int depth = 0;
    for (; at < end_; ++at) {
      const Token& token = tokens_[at];
      if (token.is('(')) ++depth;
      if (token.is(')')) --depth;
      if (depth != 0) continue;
      generated |= token.is("AS");
      kept |= token.is("STORED");
      column.has_default |= token.is("DEFAULT");
      if (token.is("PRIMARY") && at + 1 < end_ && tokens_[at + 1].is("KEY")) {
        key = true;
        descending = at + 2 < end_ && tokens_[at + 2].is("DESC");
      }
    }
    column.stored = !generated || kept;
    if (key && !descending && same_name(column.type, "INTEGER")) {
      table.rowid_column = static_cast<int>(table.columns.size());
    }
    table.columns.push_back(std::move(column));
  }

  // Looks for PRIMARY KEY (one column).
  void constraint(TableDefinition& table) const {
    for (std::size_t at = begin_; at + 4 < end_; ++at) {
      if (!tokens_[at].is("PRIMARY") || !tokens_[at + 1].is("KEY") || !tokens_[at + 2].is('(')) continue;
      std::size_t close = at + 4;
      while (close < end_ && !tokens_[close].is(')') && !tokens_[close].is(',')) ++close;
      if (close >= end_ || tokens_[close].is(',')) return;
      for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (same_name(table.columns[i].name, tokens_[at + 3].text) &&
            same_name(table.columns[i].type, "INTEGER")) {
          table.rowid_column = static_cast<int>(i);
        }
      }
      return;
    }
  }

 private:
  const Tokens& tokens_;
  std::size_t begin_, end_;
};

}  // namespace

std::optional<TableDefinition> parse_create_table(std::string_view sql) {
  Tokens tokens;
  if (!tokenize(sql, tokens) || tokens.size() < 4 || !tokens[0].is("CREATE")) return std::nullopt;
  std::size_t at = tokens[1].is("TABLE") ? 2 : 3;
  if (!tokens[at - 1].is("TABLE")) return std::nullopt;
  // what stands before the bracket is the name, which the database says elsewhere
  while (at < tokens.size() && !tokens[at].is('(')) ++at;
  if (at == tokens.size()) return std::nullopt;
  TableDefinition table;
  std::vector<Part> constraints;
  std::size_t begin = ++at;
  int depth = 1;
  for (; at < tokens.size() && depth != 0; ++at) {
    if (tokens[at].is('(')) ++depth;
    if (tokens[at].is(')')) --depth;
    if (depth != 0 && !(depth == 1 && tokens[at].is(','))) continue;
    if (at == begin || !tokens[begin].names()) return std::nullopt;
    const Part part(tokens, begin, at);
    if (part.constrains()) {
      constraints.push_back(part);
    } else {
      part.column(table);
    }
    begin = at + 1;
  }
  if (depth != 0 || table.columns.empty()) return std::nullopt;
  for (const Part& part : constraints) part.constraint(table);
  for (; at + 1 < tokens.size(); ++at) {
    table.without_rowid |= tokens[at].is("WITHOUT") && tokens[at + 1].is("ROWID");
  }
  return table;
}

}  // namespace torchtrt_viz::sqlite
