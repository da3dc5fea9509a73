"""The passes behind `zlclient.shaping.sanitise`, each a pure function from a text to a list of edits."""
