"""One's own pictures and network in, a hardened model and the proof of it out."""
