"""Let a vLLM engine profile itself on the CPU, and load what it wrote.

The model is a Llama of two tiny layers with random weights, so that nothing is fetched.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 256,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


def main(folder: Path) -> None:
    from vllm import LLM, SamplingParams

    import torchtrt_viz as tv

    model, profiles = folder / "model", folder / "profiles"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(MODEL))
    engine = LLM(
        model=str(model),
        load_format="dummy",
        skip_tokenizer_init=True,
        enforce_eager=True,
        dtype="float32",
        max_model_len=64,
        profiler_config={"profiler": "torch", "torch_profiler_dir": str(profiles)},
    )
    sampling = SamplingParams(max_tokens=4, detokenize=False, ignore_eos=True)
    prompts = [{"prompt_token_ids": list(range(3, 3 + length))} for length in (5, 20)]
    engine.start_profile()
    engine.generate(prompts, sampling)
    engine.stop_profile()

    loaded = tv.load(profiles)
    assert isinstance(loaded, tv.Trace), loaded
    table = loaded.operators()
    print(f"found: {len(loaded.spans)} spans, {len(table)} operators", flush=True)
    assert len(table), sorted(path.name for path in profiles.rglob("*"))


if __name__ == "__main__":  # the engine starts processes that import this file
    main(Path(sys.argv[1]))
