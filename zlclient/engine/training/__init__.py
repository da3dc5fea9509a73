"""How the checkpoints are made: data, the two recipes, calibration. Needs PyTorch (the extra `train`)."""
