"""The helper package of the mha-course notebooks. Start reading in `attention.py`."""

__all__ = ["__version__"]

__version__ = "0.1.0"
