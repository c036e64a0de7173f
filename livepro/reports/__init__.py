"""A report for the browser: one file that needs no other, made from JSON reports.

`content` says what is in the page, `page` puts it together with the scripts in `assets`.
"""
