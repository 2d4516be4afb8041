"""Where a notebook is run: forked from a zygote, in namespaces of its own, under limits."""
