"""Traces for simulators: what each thread executed and accessed, in the formats that simulators read."""
