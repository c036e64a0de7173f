"""What a fragment has that records the event stream."""
