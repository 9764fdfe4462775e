"""The small model that ships with the engine: a Hugging Face folder that needs no download."""

from pathlib import Path

PATH = Path(__file__).parent  # the folder itself: config.json, model.safetensors, tokenizer.json
