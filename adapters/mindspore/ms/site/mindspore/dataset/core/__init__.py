"""Settings of the data pipeline."""
