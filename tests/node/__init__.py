"""A node as the agent's tests see it: real kubelet and containerd (real.py) or hami-simkubelet (simulated.py), one interface."""
