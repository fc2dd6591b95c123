#include "executorch/loaded_engine.hpp"

#include <utility>

#include "core/blob.hpp"
#include "executorch/engine_factory.hpp"

namespace torchtrt_viz {

Status load_engine(std::span<const std::byte> blob, const std::string& name, const std::string& owner,
                   InstrumentedEngine::Options options, LoadedEngine& out) {
  out.bytes.assign(blob.begin(), blob.end());
  EngineBlob parsed;
  std::unique_ptr<Engine> engine;
  EngineIdentity identity;
  auto status = parse_blob(out.bytes, parsed);
  if (status.ok()) status = make_engine(parsed, engine);
  if (status.ok()) {
    identity.content_hash = parsed.content_hash;
    identity.name = name.empty() ? parsed.engine_name : name;
    identity.method = "forward";
    identity.runtime = engine->runtime();
    identity.owner = owner;
    status =
        InstrumentedEngine::create(std::move(engine), std::move(identity), std::move(options), out.engine);
  }
  if (!status.ok() && !name.empty()) status.message = "engine '" + name + "': " + status.message;
  return status;
}

}  // namespace torchtrt_viz
