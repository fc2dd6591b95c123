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

Status parse(const std::string& bytes, EngineBlob& out) {
  return parse_blob({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, out);
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
  EngineBlob blob;
  CHECK(parse(bytes, blob).ok());
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
  EngineBlob blob;
  CHECK(parse(assemble(header, metadata, "ftrt...."), blob).ok());
  CHECK_EQUAL(blob.kind, PayloadKind::tensorrt);
  CHECK_EQUAL(blob.format, 2);
  CHECK_EQUAL(blob.aliases.size(), std::size_t{2});
  CHECK_EQUAL(blob.aliases[0].input, std::size_t{1});
  CHECK_EQUAL(blob.aliases[0].kind, "kv_cache_update");
}

TEST(programs_are_held_to_their_checksum) {
  EngineBlob blob;
  // zlib.crc32(b"inner program") and of 31 bytes, which are not a multiple of eight
  CHECK(
      parse(blob_of(R"({"torchtrt_viz":{"program_crc32":1522498263}})", host_payload("inner program")), blob)
          .ok());
  CHECK(parse(blob_of(R"({"torchtrt_viz":{"program_crc32":1374677057}})",
                      host_payload("0123456789abcdef0123456789abcde")),
              blob)
            .ok());
  const auto status =
      parse(blob_of(R"({"torchtrt_viz":{"program_crc32":1522498263}})", host_payload("inner Program")), blob);
  CHECK_EQUAL(status.code, Code::invalid_program);
  CHECK(status.message.find("CRC-32") != std::string::npos);
}

TEST(content_hashes_follow_content) {
  EngineBlob a, b, c, d;
  CHECK(parse(blob_of("{}", host_payload("one")), a).ok());
  CHECK(parse(blob_of("{}", host_payload("one")), b).ok());
  CHECK(parse(blob_of("{}", host_payload("two")), c).ok());
  CHECK(parse(blob_of("{ }", host_payload("one")), d).ok());
  CHECK_EQUAL(a.content_hash, b.content_hash);
  CHECK(a.content_hash != c.content_hash);
  CHECK(a.content_hash != d.content_hash);
}

TEST(damaged_headers_are_refused_with_reasons) {
  const std::string engine = host_payload("program");
  const auto good = header_for("{}", engine);
  EngineBlob blob;
  CHECK(parse(assemble(good, "{}", engine), blob).ok());
  const auto refused = [&](const Header& header, const char* word) {
    const auto status = parse(assemble(header, "{}", engine), blob);
    CHECK_EQUAL(status.code, Code::invalid_program);
    CHECK(status.message.find(word) != std::string::npos);
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
  CHECK(!parse("", blob).ok());
  CHECK(!parse("TR01", blob).ok());
}

TEST(damaged_metadata_and_payloads_are_refused) {
  EngineBlob blob;
  const std::string engine = host_payload("program");
  for (
      const char* metadata :
      {"", "[]", "{", "null", R"({"io_bindings":[1]})", R"({"io_bindings":[{"name":"x"}]})",
       R"({"io_bindings":[{"name":"x","dtype":"float33","shape":[],"is_input":true}]})",
       R"({"io_bindings":[{"name":"x","dtype":"float32","shape":[-2],"is_input":true}]})",
       R"({"io_bindings":[{"name":"x","dtype":"float32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"is_input":true}]})",
       R"({"aliased_io":[{"output":"nope","input":0}]})", R"({"torchtrt_viz":{"layers":[{"name":"no id"}]}})",
       "{\"a\":\"\xFF\"}"}) {
    const auto status = parse(blob_of(metadata, engine), blob);
    CHECK_EQUAL(status.code, Code::invalid_program);
    CHECK(status.message.size() > 40);
  }
  CHECK(!parse(blob_of("{}", "TVHOST01"), blob).ok());
  std::string longer = host_payload("program");
  longer[8] = '\x7f';
  CHECK(!parse(blob_of("{}", longer), blob).ok());
  longer = host_payload("program");
  for (int i = 8; i < 16; ++i) longer[static_cast<std::size_t>(i)] = '\xFF';
  CHECK(!parse(blob_of("{}", longer), blob).ok());
}

// No outcome is wrong but reading outside the bytes, which the sanitizers see.
TEST(mutated_blobs_are_survived) {
  const auto good = blob_of(kMetadata, host_payload("inner program"));
  std::mt19937 random(1);
  EngineBlob blob;
  for (int i = 0; i < 20000; ++i) {
    auto bytes = good;
    for (unsigned n = random() % 4; n-- > 0;) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const std::string exact(bytes.data(), bytes.size());
    if (parse(exact, blob).ok()) {
      CHECK(reinterpret_cast<const char*>(blob.payload.data()) >= exact.data());
      CHECK(reinterpret_cast<const char*>(blob.payload.data() + blob.payload.size()) <=
            exact.data() + exact.size());
    }
  }
}

}  // namespace
}  // namespace torchtrt_viz
