"""File formats, one module each with reader and writer. They know the model, not how it was made."""
