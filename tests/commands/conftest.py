import pytest
from small_clone import NOTEBOOK, put


@pytest.fixture
def root(tmp_path):
    """A clone of two lessons and one exercise, in a folder whose name is not plain."""
    root = tmp_path / "mein Kürs"
    for name in ("notebooks/00_start_here", "notebooks/04_head_splitting"):
        put(root, name, NOTEBOOK)
    put(root, "exercises/04_head_splitting", NOTEBOOK)
    return root
