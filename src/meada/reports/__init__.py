"""Reports on runs, made from their folders on disk alone."""
