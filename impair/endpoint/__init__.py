"""What runs at both ends of the path: joining it, counting, probing, forgetting."""
