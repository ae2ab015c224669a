// tree-sitter's tree copied into flat nodes; the only file that knows the parser.
#include "migrate/syntax.h"

#include <tree_sitter/api.h>

#include <unordered_map>

#include "migrate/parser_memory.h"
#include "support/error.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace cairn::migrate {
namespace {

// Symbols and fields of the grammar as our kinds and fields, looked up once.
struct Grammar {
  std::vector<Kind> kinds;
  std::vector<Field> fields;

  Grammar() {
    const TSLanguage* language = tree_sitter_python();
    std::unordered_map<std::string_view, Kind> kind_of = {
#define CAIRN_ENTRY(name) {#name, Kind::name},
        CAIRN_SYNTAX_KINDS(CAIRN_ENTRY)
#undef CAIRN_ENTRY
            {"true", Kind::true_},
        {"false", Kind::false_},
        {"float", Kind::float_}};
    kind_of.erase("op");
    for (uint32_t symbol = 0; symbol < ts_language_symbol_count(language); ++symbol) {
      bool named = ts_language_symbol_type(language, static_cast<TSSymbol>(symbol)) == TSSymbolTypeRegular;
      auto found =
          named ? kind_of.find(ts_language_symbol_name(language, static_cast<TSSymbol>(symbol))) : kind_of.end();
      kinds.push_back(found == kind_of.end() ? Kind::other : found->second);
    }
    std::unordered_map<std::string_view, Field> field_of = {
#define CAIRN_ENTRY(name) {#name, Field::name},
        CAIRN_SYNTAX_FIELDS(CAIRN_ENTRY)
#undef CAIRN_ENTRY
            {"operator", Field::operator_}};
    fields.push_back(Field::none);
    for (uint32_t field = 1; field <= ts_language_field_count(language); ++field) {
      auto found = field_of.find(ts_language_field_name_for_id(language, static_cast<TSFieldId>(field)));
      fields.push_back(found == field_of.end() ? Field::none : found->second);
    }
  }
};

const Grammar& grammar() {
  static const Grammar instance;
  return instance;
}

/// In the memory of the parse, as is all that it makes.
TSParser* new_parser() {
  static const bool memory_is_ours = [] {
    ts_set_allocator(ParserMemory::allocate, ParserMemory::allocate_zeros, ParserMemory::reallocate,
                     ParserMemory::free);
    return true;
  }();
  TSParser* parser = ts_parser_new();
  CHECK(memory_is_ours && ts_parser_set_language(parser, tree_sitter_python()), "the grammar does not fit the parser");
  return parser;
}

/// Of a text that is not needed any more.
TSNode parsed(const std::string& text) {
  const TSTree* tree = ts_parser_parse_string(new_parser(), nullptr, text.data(), static_cast<uint32_t>(text.size()));
  CHECK(tree, "no tree for {} bytes", text.size());
  return ts_tree_root_node(tree);
}

}  // namespace

void when_parser_lacks_memory(void (*handler)(size_t bytes)) { ParserMemory::without_memory = handler; }

Syntax::Syntax(std::string_view text, const std::string& encoding) : text_(text) {
  const ParserMemory memory;
  const TSNode root = parsed(parsable_copy(text, encoding));
  nodes_.reserve(text.size() / 4 + 8);
  const Grammar& known = grammar();
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  std::vector<NodeId> open;  // the kept ancestors of the cursor's node; kNoNode for those left out
  for (bool down = true;;) {
    if (down) {
      TSNode node = ts_tree_cursor_current_node(&cursor);
      Field field = known.fields[ts_tree_cursor_current_field_id(&cursor)];
      bool missing = ts_node_is_missing(node);
      bool named = ts_node_is_named(node);
      bool operator_token = !named && (field == Field::operator_ || field == Field::operators);
      if (!named && !operator_token && !missing) {
        open.push_back(kNoNode);
      } else {
        TSSymbol symbol = ts_node_symbol(node);
        Kind kind = operator_token                      ? Kind::op
                    : ts_node_is_error(node) || missing ? Kind::ERROR
                    : symbol < known.kinds.size()       ? known.kinds[symbol]
                                                        : Kind::other;
        NodeId parent = kNoNode;
        for (size_t i = open.size(); i-- > 0 && parent == kNoNode;) parent = open[i];
        open.push_back(size());
        if (kind == Kind::ERROR) {
          ++errors_;
          if (first_error_ == kNoNode) first_error_ = size();
        }
        nodes_.push_back({ts_node_start_byte(node), ts_node_end_byte(node), parent, 0, kind, field,
                          ts_node_has_error(node) || missing});
      }
      if (ts_tree_cursor_goto_first_child(&cursor)) continue;
    }
    NodeId closed = open.back();
    open.pop_back();
    if (closed != kNoNode) nodes_[closed].after = size();
    if (ts_tree_cursor_goto_next_sibling(&cursor)) {
      down = true;
    } else if (ts_tree_cursor_goto_parent(&cursor)) {
      down = false;
    } else {
      break;
    }
  }
}

size_t Syntax::errors_in(std::string_view text, const std::string& encoding) {
  {
    const ParserMemory memory;
    if (!ts_node_has_error(parsed(parsable_copy(text, encoding)))) return 0;
  }
  return Syntax(text, encoding).error_count();
}

NodeId Syntax::next(NodeId id) const {
  NodeId parent = (*this)[id].parent;
  NodeId after = (*this)[id].after;
  return parent != kNoNode && after < (*this)[parent].after ? after : kNoNode;
}

NodeId Syntax::child(NodeId id, Field field) const {
  if (id == kNoNode) return kNoNode;
  for (NodeId at = first(id); at != kNoNode; at = next(at))
    if (nodes_[at].field == field) return at;
  return kNoNode;
}

std::vector<NodeId> Syntax::children(NodeId id) const {
  std::vector<NodeId> found;
  for (NodeId at = first(id); at != kNoNode; at = next(at))
    if (nodes_[at].kind != Kind::comment && nodes_[at].kind != Kind::op) found.push_back(at);
  return found;
}

NodeId Syntax::ancestor(NodeId id, Kind kind) const {
  for (NodeId at = (*this)[id].parent; at != kNoNode; at = nodes_[at].parent)
    if (nodes_[at].kind == kind) return at;
  return kNoNode;
}

NodeId Syntax::statement(NodeId id) const {
  while (true) {
    NodeId parent = (*this)[id].parent;
    if (parent == kNoNode || (*this)[parent].kind == Kind::block || (*this)[parent].kind == Kind::module) return id;
    id = parent;
  }
}

NodeId Syntax::unwrap(NodeId id) const {
  while (id != kNoNode && (*this)[id].kind == Kind::parenthesized_expression) {
    std::vector<NodeId> inner = children(id);
    if (inner.size() != 1) break;
    id = inner[0];
  }
  return id;
}

bool string_value(const Syntax& syntax, NodeId id, std::string& value) {
  value.clear();
  id = syntax.unwrap(id);
  if (id == kNoNode || (syntax.kind(id) != Kind::string && syntax.kind(id) != Kind::concatenated_string)) return false;
  for (NodeId at = id; at < syntax[id].after; ++at) {
    if (syntax.kind(at) == Kind::interpolation) return false;
    if (syntax.kind(at) == Kind::string_content) value += syntax.text(at);
  }
  return true;
}

}  // namespace cairn::migrate
