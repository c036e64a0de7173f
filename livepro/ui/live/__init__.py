"""The live view: an interactive screen that shows a run while it goes on.

`state` says what a key does, `page` and its parts draw a picture, `terminal`
owns the terminal, `app` is the loop between them. Nothing here knows where
pictures come from.
"""
