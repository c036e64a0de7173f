"""Why accesses miss: for the first time, for want of room, for want of ways."""
