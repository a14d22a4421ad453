"""From scores to decisions."""
