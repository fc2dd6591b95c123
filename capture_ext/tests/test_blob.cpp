#include <cstring>
#include <random>

#include "core/blob.hpp"
#include "tests/check.hpp"

namespace torchtrt_viz {
namespace {

struct Header {
  std::string magic = "TR01";
  std::uint32_t metadata_offset = 32;
  std::uint32_t metadata_size = 0;
  std::uint32_t engine_offset = 0;
  std::uint64_t engine_size = 0;
};

template <typename T>
void append(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

std::string assemble(const Header& header, const std::string& metadata, const std::string& engine) {
  std::string out = header.magic;
  append(out, header.metadata_offset);
  append(out, header.metadata_size);
  append(out, header.engine_offset);
  append(out, header.engine_size);
  out += std::string("\x01\0\0\0\0\0\0\0", 8);
  out += metadata;
  while (out.size() % 16 != 0) out += '\0';
  return out + engine;
}

Header header_for(const std::string& metadata, const std::string& engine) {
  Header header;
  header.metadata_size = static_cast<std::uint32_t>(metadata.size());
  header.engine_offset = static_cast<std::uint32_t>((32 + metadata.size() + 15) / 16 * 16);
  header.engine_size = engine.size();
  return header;
}

std::string blob_of(const std::string& metadata, const std::string& engine) {
  return assemble(header_for(metadata, engine), metadata, engine);
}

std::string host_payload(const std::string& program) {
  std::string out = "TVHOST01";
  append(out, static_cast<std::uint64_t>(program.size()));
  return out + program;
}

EngineBlob parse(const std::string& bytes) {
  return parse_blob({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

std::string payload_text(const EngineBlob& blob) {
  return {reinterpret_cast<const char*>(blob.payload.data()), blob.payload.size()};
}

const std::string kMetadata =
    R"({"io_bindings":[{"name":"x","dtype":"float32","shape":[-1,3],"is_input":true},)"
    R"({"name":"cache","dtype":"torch.float16","shape":[2],"is_input":true},)"
    R"({"name":"y","dtype":"bool","shape":[],"is_input":false}],)"
    R"("torchtrt_viz":{"version":1,"engine_name":"re gion","stateful":true,)"
    R"("layers":[{"id":"layer_0000_add.out","name":"add","nodes":["a","b"],"module":"m","whole":true}]}})";

TEST(host_blobs_are_read) {
  const auto bytes = blob_of(kMetadata, host_payload("inner program") + "padding");
  const auto blob = parse(bytes);
  CHECK_EQUAL(blob.kind, PayloadKind::host);
  CHECK_EQUAL(payload_text(blob), "inner program");
  CHECK_EQUAL(blob.engine_name, "re_gion");
  CHECK(blob.stateful);
  CHECK_EQUAL(blob.bindings.size(), std::size_t{3});
  CHECK_EQUAL(blob.bindings[0].shape[0], -1);
  CHECK_EQUAL(blob.bindings[1].dtype, DType::float16);
  CHECK_EQUAL(blob.bindings[2].dtype, DType::boolean);
  CHECK_EQUAL(blob.layers.size(), std::size_t{1});
  CHECK_EQUAL(blob.layers[0].nodes.size(), std::size_t{2});
  CHECK(blob.layers[0].whole);
}

TEST(plans_and_aliases_are_read) {
  std::string metadata = kMetadata;
  metadata.pop_back();
  metadata +=
      R"(,"aliased_io":[{"output":"y","input":"cache","kind":"kv_cache_update"},{"output":0,"input":1,"kind":"user"}]})";
  auto header = header_for(metadata, "ftrt....");
  header.magic = "TR02";
  const auto blob = parse(assemble(header, metadata, "ftrt...."));
  CHECK_EQUAL(blob.kind, PayloadKind::tensorrt);
  CHECK_EQUAL(blob.format, 2);
  CHECK_EQUAL(blob.aliases.size(), std::size_t{2});
  CHECK_EQUAL(blob.aliases[0].input, std::size_t{1});
  CHECK_EQUAL(blob.aliases[0].kind, "kv_cache_update");
}

TEST(programs_are_held_to_their_checksum) {
  // zlib.crc32(b"inner program") and of 31 bytes, which are not a multiple of eight
  parse(blob_of(R"({"torchtrt_viz":{"program_crc32":1522498263}})", host_payload("inner program")));
  parse(blob_of(R"({"torchtrt_viz":{"program_crc32":1374677057}})",
                host_payload("0123456789abcdef0123456789abcde")));
  const auto failure = test::failure_of([&] {
    parse(blob_of(R"({"torchtrt_viz":{"program_crc32":1522498263}})", host_payload("inner Program")));
  });
  CHECK_EQUAL(failure.code(), Code::invalid_program);
  CHECK(test::says(failure, "CRC-32"));
}

TEST(content_hashes_follow_content) {
  const auto a = parse(blob_of("{}", host_payload("one"))), b = parse(blob_of("{}", host_payload("one"))),
             c = parse(blob_of("{}", host_payload("two"))), d = parse(blob_of("{ }", host_payload("one")));
  CHECK_EQUAL(a.content_hash, b.content_hash);
  CHECK(a.content_hash != c.content_hash);
  CHECK(a.content_hash != d.content_hash);
}

TEST(damaged_headers_are_refused_with_reasons) {
  const std::string engine = host_payload("program");
  const auto good = header_for("{}", engine);
  parse(assemble(good, "{}", engine));
  const auto refused = [&](const Header& header, const char* word) {
    const auto failure = test::failure_of([&] { parse(assemble(header, "{}", engine)); });
    CHECK_EQUAL(failure.code(), Code::invalid_program);
    CHECK(test::says(failure, word));
  };
  auto h = good;
  h.magic = "TR03";
  refused(h, "TR01");
  h = good;
  h.magic = "TR02";
  refused(h, "aliased_io");
  h = good;
  h.metadata_offset = 0xFFFFFFF0;
  refused(h, "metadata");
  h = good;
  h.metadata_size = 0xFFFFFFFF;
  refused(h, "metadata");
  h = good;
  h.metadata_offset = 8;
  refused(h, "metadata");
  h = good;
  h.engine_offset += 1;
  refused(h, "multiple of 16");
  h = good;
  h.engine_offset = 0xFFFFFFF0;
  refused(h, "engine");
  h = good;
  h.engine_size = ~std::uint64_t{0};  // offset + size wraps to less than the offset
  refused(h, "engine");
  h = good;
  h.engine_size = ~std::uint64_t{0} - h.engine_offset + 1;  // offset + size wraps to 0
  refused(h, "engine");
  h = good;
  h.engine_size = 0;
  refused(h, "empty");
  h = good;
  h.engine_offset = 32;
  refused(h, "overlap");
  CHECK_THROWS(parse(""));
  CHECK_THROWS(parse("TR01"));
}

TEST(damaged_metadata_and_payloads_are_refused) {
  const std::string engine = host_payload("program");
  for (
      const char* metadata :
      {"", "[]", "{", "null", R"({"io_bindings":[1]})", R"({"io_bindings":[{"name":"x"}]})",
       R"({"io_bindings":[{"name":"x","dtype":"float33","shape":[],"is_input":true}]})",
       R"({"io_bindings":[{"name":"x","dtype":"float32","shape":[-2],"is_input":true}]})",
       R"({"io_bindings":[{"name":"x","dtype":"float32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"is_input":true}]})",
       R"({"aliased_io":[{"output":"nope","input":0}]})", R"({"torchtrt_viz":{"layers":[{"name":"no id"}]}})",
       "{\"a\":\"\xFF\"}"}) {
    const auto failure = test::failure_of([&] { parse(blob_of(metadata, engine)); });
    CHECK_EQUAL(failure.code(), Code::invalid_program);
    CHECK(std::string(failure.what()).size() > 40);
  }
  CHECK_THROWS(parse(blob_of("{}", "TVHOST01")));
  std::string longer = host_payload("program");
  longer[8] = '\x7f';
  CHECK_THROWS(parse(blob_of("{}", longer)));
  longer = host_payload("program");
  for (int i = 8; i < 16; ++i) longer[static_cast<std::size_t>(i)] = '\xFF';
  CHECK_THROWS(parse(blob_of("{}", longer)));
}

// No outcome is wrong but reading outside the bytes, which the sanitizers see.
TEST(mutated_blobs_are_survived) {
  const auto good = blob_of(kMetadata, host_payload("inner program"));
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    auto bytes = good;
    for (unsigned n = random() % 4; n-- > 0;) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const std::string exact(bytes.data(), bytes.size());
    try {
      const auto blob = parse(exact);
      CHECK(reinterpret_cast<const char*>(blob.payload.data()) >= exact.data());
      CHECK(reinterpret_cast<const char*>(blob.payload.data() + blob.payload.size()) <=
            exact.data() + exact.size());
    } catch (const Error& failure) {
      CHECK_EQUAL(failure.code(), Code::invalid_program);
    }
  }
}

}  // namespace
}  // namespace torchtrt_viz
