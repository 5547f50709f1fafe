"""Code shared by several methods."""
