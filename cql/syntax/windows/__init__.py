"""Windows as they are written, before a time domain is known."""
