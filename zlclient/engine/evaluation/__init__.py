"""What the claims about the two generations come to, measured side by side in one run."""
