"""Runs when an interpreter starts with the stand-in on its path; readies what SGLang imports.

torchvision's compiled part links against CUDA, so beside a CPU torch it stays unloaded, and the
package then fails where it describes two operators that nobody defined. They are declared just
before torchvision is imported, which also spares processes that never need torch.
"""

import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from typing import Any


class DeclareVisionOperators(importlib.abc.MetaPathFinder):
    """Finds nothing itself; declares the operators when torchvision is looked for."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name != "torchvision":
            return None
        sys.meta_path.remove(self)
        import torch

        self.library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, operator):
                self.library.define(
                    f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                )
        sys.modules[__name__].vision = self.library  # type: ignore[attr-defined] # outlives the finder
        return None


sys.meta_path.insert(0, DeclareVisionOperators())
