"""What a deployment needs for a load, computed from measured figures. Begin with `deployment.needs_of`."""
