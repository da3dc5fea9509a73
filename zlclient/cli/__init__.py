"""The `zlclient` command."""
