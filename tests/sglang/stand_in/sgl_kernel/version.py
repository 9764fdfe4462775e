"""`sgl_kernel.version`. SGLang compares it with a lower bound, which this passes."""

__version__ = "9.0.0+cpu.stand.in"
