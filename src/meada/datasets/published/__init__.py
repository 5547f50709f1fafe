"""Published data files: where they are, downloads and checks."""
