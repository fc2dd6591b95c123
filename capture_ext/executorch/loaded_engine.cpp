#include "executorch/loaded_engine.hpp"

#include <utility>

#include "core/blob.hpp"
#include "executorch/engine_factory.hpp"

namespace torchtrt_viz {

LoadedEngine load_engine(std::span<const std::byte> blob, const std::string& name, const std::string& owner,
                         InstrumentedEngine::Options options) {
  LoadedEngine out;
  out.bytes.assign(blob.begin(), blob.end());
  try {
    const auto parsed = parse_blob(out.bytes);
    auto engine = make_engine(parsed);
    EngineIdentity identity;
    identity.content_hash = parsed.content_hash;
    identity.name = name.empty() ? parsed.engine_name : name;
    identity.method = "forward";
    identity.runtime = engine->runtime();
    identity.owner = owner;
    out.engine = InstrumentedEngine::create(std::move(engine), std::move(identity), std::move(options));
  } catch (const Error& failure) {
    if (name.empty()) throw;
    throw failure.with_message("engine '" + name + "': " + failure.what());
  }
  return out;
}

}  // namespace torchtrt_viz
