"""Responders: who answers what the wires read. `base` is the seam; one file a responder."""
