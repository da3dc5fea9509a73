"""The reference engine: one small decoder in two generations, trained by `training`, run with numpy alone."""
