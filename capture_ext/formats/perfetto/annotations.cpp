#include "formats/perfetto/annotations.hpp"

#include <charconv>
#include <cmath>

#include "formats/perfetto/fields.hpp"

namespace torchtrt_viz::perfetto {
namespace {

constexpr int kDeepest = 64;

class Writer {
 public:
  Writer(const Interned* interned, const Strings& strings) : interned_(interned), strings_(strings) {}

  // Adds the members of one event's arguments to an open object.
  void members(Bytes fields_of_event) {
    Fields fields(fields_of_event);
    while (fields.next()) {
      switch (fields.number()) {
        case event_field::kDebugAnnotations:
          annotation_member(fields.bytes(), 0);
          break;
        case event_field::kSourceLocation: {
          Strings scratch;
          const SourceLocation location = read_location(fields.bytes(), scratch);
          key("source_location");
          source_location(location, scratch);
          break;
        }
        case event_field::kSourceLocationIid:
          if (interned_ != nullptr) {
            if (const auto found = interned_->locations.find(fields.value());
                found != interned_->locations.end()) {
              key("source_location");
              source_location(found->second, strings_);
            }
          }
          break;
        case event_field::kLogMessage:
          log_message(fields.bytes());
          break;
        case event_field::kTaskExecution:
          posted_from(fields.bytes());
          break;
        case event_field::kCorrelationId:
          key("correlation_id");
          unsigned_number(fields.value());
          break;
        case event_field::kCorrelationText:
          key("correlation_id");
          text(fields.text());
          break;
        case event_field::kCorrelationTextIid:
          if (interned_ != nullptr)
            interned_member("correlation_id", interned_->correlation_texts, fields.value());
          break;
        default:
          break;
      }
    }
  }

  void open() { out_.push_back('{'); }
  std::string close() {
    out_.push_back('}');
    return std::move(out_);
  }
  void use(const Interned* interned) { interned_ = interned; }

 private:
  void comma() {
    const char last = out_.back();
    if (last != '{' && last != '[' && last != ':') out_.push_back(',');
  }

  void key(std::string_view name) {
    comma();
    text(name);
    out_.push_back(':');
  }

  void text(std::string_view value) {
    static constexpr char kHex[] = "0123456789abcdef";
    out_.push_back('"');
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_.push_back('\\');
        out_.push_back(c);
      } else if (byte < 0x20) {
        out_.append("\\u00").push_back(kHex[byte >> 4]);
        out_.push_back(kHex[byte & 15]);
      } else {
        out_.push_back(c);
      }
    }
    out_.push_back('"');
  }

  void unsigned_number(std::uint64_t value) { number(value); }
  template <typename T>
  void number(T value) {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    out_.append(buffer, end);
  }
  // JSON has no token for them; the reader on the other side knows these three.
  void real(double value) {
    if (std::isnan(value)) {
      out_.append("NaN");
    } else if (std::isinf(value)) {
      out_.append(value < 0 ? "-Infinity" : "Infinity");
    } else {
      const std::size_t begin = out_.size();
      number(value);
      // to_chars writes 1 for 1.0: keep it a real number on the other side
      if (out_.find_first_of(".e", begin) == std::string::npos) out_.append(".0");
    }
  }

  void source_location(const SourceLocation& location, const Strings& strings) {
    out_.push_back('{');
    if (location.file != kNone) {
      key("file_name");
      text(strings.text(location.file));
    }
    if (location.function != kNone) {
      key("function_name");
      text(strings.text(location.function));
    }
    key("line_number");
    number(location.line);
    out_.push_back('}');
  }

  void interned_member(std::string_view name, const IdMap<std::int32_t>& table, std::uint64_t iid) {
    const auto found = table.find(iid);
    if (found == table.end()) return;
    key(name);
    text(strings_.text(found->second));
  }

  void log_message(Bytes message) {
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == 2 && interned_ != nullptr) {
        interned_member("log_message", interned_->log_bodies, fields.value());
      }
    }
  }

  void posted_from(Bytes message) {
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() != 1 || interned_ == nullptr) continue;
      if (const auto found = interned_->locations.find(fields.value()); found != interned_->locations.end()) {
        key("posted_from");
        source_location(found->second, strings_);
      }
    }
  }

  std::string_view name_of(Bytes annotation) const {
    Fields fields(annotation);
    std::string_view name = "(unnamed)";
    while (fields.next()) {
      if (fields.number() == annotation_field::kName) name = fields.text();
      if (fields.number() == annotation_field::kNameIid && interned_ != nullptr) {
        const auto found = interned_->annotation_names.find(fields.value());
        if (found != interned_->annotation_names.end()) name = strings_.text(found->second);
      }
    }
    return name;
  }

  void annotation_member(Bytes annotation, int depth) {
    key(name_of(annotation));
    annotation_value(annotation, depth);
  }

  // The value of an annotation; repeated dict entries or array values make one container.
  void annotation_value(Bytes annotation, int depth) {
    if (depth >= kDeepest) {
      out_.append("null");
      return;
    }
    Fields fields(annotation);
    bool written = false;
    while (!written && fields.next()) {
      switch (fields.number()) {
        case annotation_field::kBool:
          out_.append(fields.value() != 0 ? "true" : "false");
          written = true;
          break;
        case annotation_field::kUint:
        case annotation_field::kPointer:
          number(fields.value());
          written = true;
          break;
        case annotation_field::kInt:
          number(fields.signed_value());
          written = true;
          break;
        case annotation_field::kDouble:
          real(fields.real());
          written = true;
          break;
        case annotation_field::kString:
        case annotation_field::kJson:
          text(fields.text());
          written = true;
          break;
        case annotation_field::kStringIid:
          if (interned_ != nullptr) {
            const auto found = interned_->annotation_strings.find(fields.value());
            if (found != interned_->annotation_strings.end()) {
              text(strings_.text(found->second));
              written = true;
            }
          }
          break;
        case annotation_field::kNested:
          nested_value(fields.bytes(), depth + 1);
          written = true;
          break;
        case annotation_field::kDict:
        case annotation_field::kArray:
          container(annotation, fields.number(), depth + 1);
          written = true;
          break;
        default:
          break;
      }
    }
    if (!written) out_.append("null");
  }

  void container(Bytes annotation, std::uint32_t number_of_items, int depth) {
    const bool dict = number_of_items == annotation_field::kDict;
    out_.push_back(dict ? '{' : '[');
    Fields fields(annotation);
    while (fields.next()) {
      if (fields.number() != number_of_items) continue;
      if (dict) {
        annotation_member(fields.bytes(), depth);
      } else {
        comma();
        annotation_value(fields.bytes(), depth);
      }
    }
    out_.push_back(dict ? '}' : ']');
  }

  // NestedValue: the form that dictionaries and arrays had before 2020.
  void nested_value(Bytes nested, int depth) {
    if (depth >= kDeepest) {
      out_.append("null");
      return;
    }
    std::uint64_t type = 0;
    std::vector<std::string_view> keys;
    std::vector<Bytes> values;
    std::vector<Bytes> items;
    std::string scalar = "null";
    Fields fields(nested);
    while (fields.next()) {
      switch (fields.number()) {
        case nested_field::kType:
          type = fields.value();
          break;
        case nested_field::kKeys:
          keys.push_back(fields.text());
          break;
        case nested_field::kValues:
          values.push_back(fields.bytes());
          break;
        case nested_field::kItems:
          items.push_back(fields.bytes());
          break;
        case nested_field::kInt:
          scalar = std::to_string(fields.signed_value());
          break;
        case nested_field::kDouble: {
          std::string kept = std::move(out_);
          out_.clear();
          real(fields.real());
          scalar = std::move(out_);
          out_ = std::move(kept);
          break;
        }
        case nested_field::kBool:
          scalar = fields.value() != 0 ? "true" : "false";
          break;
        case nested_field::kString: {
          std::string kept = std::move(out_);
          out_.clear();
          text(fields.text());
          scalar = std::move(out_);
          out_ = std::move(kept);
          break;
        }
        default:
          break;
      }
    }
    if (type == 1) {
      out_.push_back('{');
      for (std::size_t i = 0; i < keys.size() && i < values.size(); ++i) {
        key(keys[i]);
        nested_value(values[i], depth + 1);
      }
      out_.push_back('}');
    } else if (type == 2) {
      out_.push_back('[');
      for (const Bytes item : items) {
        comma();
        nested_value(item, depth + 1);
      }
      out_.push_back(']');
    } else {
      out_.append(scalar);
    }
  }

  const Interned* interned_;
  const Strings& strings_;
  std::string out_;
};

}  // namespace

std::uint32_t Arguments::new_epoch() {
  epochs_.push_back(std::make_unique<Interned>());
  return static_cast<std::uint32_t>(epochs_.size() - 1);
}

std::int32_t Arguments::keep(const std::vector<Bytes>& fields, std::uint32_t epoch) {
  if (fields.empty()) return kNone;
  const std::uint64_t offset = arena_.size();
  for (const Bytes field : fields) arena_.insert(arena_.end(), field.begin(), field.end());
  segments_.push_back({offset, static_cast<std::uint32_t>(arena_.size() - offset), epoch});
  return static_cast<std::int32_t>(segments_.size() - 1);
}

std::string Arguments::json(std::int32_t first, std::int32_t second, const Strings& strings) const {
  Writer writer(nullptr, strings);
  writer.open();
  for (const std::int32_t number : {first, second}) {
    if (number == kNone) continue;
    const Segment& segment = segments_[static_cast<std::size_t>(number)];
    writer.use(segment.epoch == kNoEpoch ? nullptr : epochs_[segment.epoch].get());
    writer.members({arena_.data() + segment.offset, segment.size});
  }
  return writer.close();
}

}  // namespace torchtrt_viz::perfetto
