"""The host side of the lab: from matrix.yaml to a run folder and its report."""
