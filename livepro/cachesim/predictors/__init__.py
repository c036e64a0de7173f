"""Branch predictors by choice: bimodal, gshare, TAGE, and a return-address stack."""
