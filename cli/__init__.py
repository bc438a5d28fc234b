"""The composition root: the `baton` command. Alone may import both webapp and worker."""
