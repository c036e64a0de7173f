"""All fragments dropped when there is no room for new ones: their room made free, their blocks kept in
mind."""
