"""`kubectl supervisor`: see and steer agents from a terminal, with the kubeconfig alone."""
