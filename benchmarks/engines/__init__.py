"""The engines that are compared, each in a process of its own that does what it is told."""
